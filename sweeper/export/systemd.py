"""A systemd unit for a server on a machine of its own. Pure."""

from __future__ import annotations

import re

from sweeper.export import container, secrets
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.origin import origin
from sweeper.export.vllm_config import YAML_NAME
from sweeper.export.vllm_config import render as render_config
from sweeper.export.yaml_text import comments, line

FILE_NAME = "vllm.service"
_PREFIX = "/opt/vllm/bin"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}
_ESCAPED = re.compile(r'[\\"%\x01-\x1f\x7f]')
_OF_USERS = ("/home/", "/root/")


def render(source: ExportInput) -> Files:
    """``vllm.service``, and the ``vllm.yaml`` that it starts from."""
    return {**render_config(source), FILE_NAME: File(unit_text(source))}


def quoted(text: str) -> str:
    """A word that systemd reads back as it was: quotes, escapes and specifiers have no effect."""
    return '"' + _ESCAPED.sub(lambda match: _escape(match[0]), text) + '"'


def _escape(sign: str) -> str:
    return _ESCAPES.get(sign, f"\\x{ord(sign):02x}")


def unit_text(source: ExportInput) -> str:
    """The unit: its own user, its own cache, nothing else to write to."""
    name = container.name_of(source)
    return comments(_lines(source, name)) + "\n".join(
        [
            "[Unit]",
            f"Description={line(source.served_name).replace('%', '%%')} "
            f"(vLLM, trial {source.recommendation.trial})",
            "Wants=network-online.target",
            "After=network-online.target",
            "",
            "[Service]",
            "Type=exec",
            f"ExecStart={_command(source, name)}",
            *_environment(source, name),
            "DynamicUser=yes",
            f"CacheDirectory={name}",
            f"WorkingDirectory=%C/{name}",
            "Restart=on-failure",
            "RestartSec=10",
            "KillMode=mixed",
            "TimeoutStopSec=60",
            "LimitNOFILE=65536",
            "LimitMEMLOCK=infinity",
            "NoNewPrivileges=yes",
            "PrivateTmp=yes",
            "ProtectSystem=strict",
            f"ProtectHome={'read-only' if _of_users(source) else 'yes'}",
            "ProtectKernelTunables=yes",
            "ProtectControlGroups=yes",
            "RestrictSUIDSGID=yes",
            "LockPersonality=yes",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def _command(source: ExportInput, name: str) -> str:
    config = f"--config /etc/vllm/{name}.yaml"
    if module := source.measured_on.module:
        return f"{_PREFIX}/python -m {module} {config}"
    return f"{_PREFIX}/vllm serve {config}"


def _environment(source: ExportInput, name: str) -> list[str]:
    plain = [f"Environment={quoted(f'{key}={value}')}" for key, value in source.public_env.items()]
    return [f"Environment=HOME=%C/{name}", *plain, f"EnvironmentFile=-/etc/vllm/{name}.env"]


def _of_users(source: ExportInput) -> bool:
    """Whether a model lies in a folder of users."""
    return any(folder.startswith(_OF_USERS) for folder in container.contained(source).mounts)


def _lines(source: ExportInput, name: str) -> list[str]:
    readable = list(container.contained(source).mounts)
    lost = secrets.lost_flags(source)
    return [
        *origin(source),
        "",
        f"vLLM is expected in {_PREFIX}: change ExecStart where it is elsewhere.",
        *([f"Any user must be able to read {', '.join(readable)}."] if readable else []),
        *([f"Secret flags were left out: {', '.join(lost)}."] if lost else []),
        f"Install: sudo install -D -m 644 {YAML_NAME} /etc/vllm/{name}.yaml",
        f"Install: sudo install -D -m 644 {FILE_NAME} /etc/systemd/system/{name}.service",
        f"Secrets: {', '.join(secrets.variables(source))}, as NAME=value lines of "
        f"/etc/vllm/{name}.env (mode 600).",
        f"Start: sudo systemctl enable --now {name}",
        "A start may take minutes: the unit is active as soon as the process runs, the server "
        f"answers when {container.HEALTH} does.",
    ]
