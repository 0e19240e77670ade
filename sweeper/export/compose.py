"""Docker Compose: one server, and on request a proxy that holds to the limit. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from sweeper.export import container, machine, nginx, secrets
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.container import Contained
from sweeper.export.origin import origin, tags
from sweeper.export.vllm_config import YAML_NAME
from sweeper.export.vllm_config import render as render_config
from sweeper.export.yaml_text import comments, dump

FILE_NAME = "compose.yaml"
NGINX_IMAGE = "nginx:1.28.0-alpine"
_PROFILE = "gate"


def render(source: ExportInput) -> Files:
    """``compose.yaml``, the ``vllm.yaml`` it mounts, and ``nginx.conf`` where there is a limit."""
    gate = nginx.render(source)
    text = comments(_lines(source)) + dump(project(source, gated=bool(gate)))
    return {**render_config(source), FILE_NAME: File(text), **gate}


def _lines(source: ExportInput) -> list[str]:
    start = ["Start: docker compose up -d"]
    if source.limit is not None:
        start.append(
            f"Start with a proxy on port {nginx.PORT} that refuses (429) what is above the limit: "
            f"docker compose --profile {_PROFILE} up -d (and take away the ports of vllm)"
        )
    names = ", ".join(secrets.variables(source))
    return [
        *origin(source),
        "",
        f"Secrets come from the shell that starts it or from a file .env beside this: {names}.",
        *container.notes(source),
        *start,
    ]


def project(source: ExportInput, *, gated: bool) -> dict[str, Any]:
    """The whole file."""
    inside = container.contained(source)
    services = {"vllm": server(inside, source), **({_PROFILE: gate(source)} if gated else {})}
    return {"name": container.name_of(source), "services": services, "volumes": {"home": {}}}


def literal(text: str) -> str:
    """Text in which Compose would put variables in place of ``$NAME``."""
    return text.replace("$", "$$")


def server(inside: Contained, source: ExportInput) -> dict[str, Any]:
    """The engine, with every folder of a model under its own path."""
    port = source.port
    # In the container it listens to all; outside where it was asked to.
    command = ["--config", container.CONFIG_PATH, "--host", inside.source.host]
    health = (
        f"import urllib.request as r; r.urlopen('http://127.0.0.1:{port}{container.HEALTH}', "
        "timeout=5)"
    )
    start_s = machine.start_attempts(source) * machine.PROBE_PERIOD_S
    plain = {name: literal(value) for name, value in container.environment(source).items()}
    return {
        "image": source.measured_on.image,
        "entrypoint": list(container.COMMAND),
        "command": command,
        "working_dir": container.HOME,
        "environment": {**plain, **dict.fromkeys(secrets.variables(source))},
        "ports": [_published(source.host, port, port)],
        "volumes": [
            _bound(f"./{YAML_NAME}", container.CONFIG_PATH),
            *(_bound(literal(folder), literal(place)) for folder, place in inside.mounts.items()),
            {"type": "volume", "source": "home", "target": container.HOME},
        ],
        "shm_size": f"{machine.shm_gib(source)}gb",
        **_devices(source),
        "healthcheck": {
            "test": ["CMD", "python3", "-c", health],
            "interval": f"{machine.PROBE_PERIOD_S}s",
            "timeout": "10s",
            "retries": 6,
            "start_period": f"{start_s}s",
        },
        "restart": "unless-stopped",
        "security_opt": ["no-new-privileges:true"],
        "cap_drop": ["ALL"],
        "labels": {name: literal(value) for name, value in tags(source).items()},
    }


def _devices(source: ExportInput) -> dict[str, Any]:
    """GPUs and a user that is not root; on a CPU whole cores, memory, and NUMA binding."""
    if gpus := machine.gpu_count(source):
        device = {"driver": "nvidia", "count": gpus, "capabilities": ["gpu"]}
        return {
            "user": f"{container.USER_ID}:{container.GROUP_ID}",
            "deploy": {"resources": {"reservations": {"devices": [device]}}},
        }
    return {
        "cpuset": f"0-{machine.cpu_cores(source) - 1}",
        "mem_limit": f"{machine.memory_gib(source)}gb",
        "cap_add": ["SYS_NICE"],
    }


def gate(source: ExportInput) -> dict[str, Any]:
    """The proxy."""
    return {
        "profiles": [_PROFILE],
        "image": NGINX_IMAGE,
        "depends_on": {"vllm": {"condition": "service_healthy"}},
        "ports": [_published(source.host, nginx.PORT, nginx.PORT)],
        "volumes": [_bound(f"./{nginx.FILE_NAME}", "/etc/nginx/conf.d/default.conf")],
        "restart": "unless-stopped",
        "security_opt": ["no-new-privileges:true"],
    }


def _published(host: str, outside: int, inside: int) -> dict[str, Any]:
    """A port on the address asked for; on all where that is no address but a name."""
    address = {"localhost": "127.0.0.1"}.get(host, host)
    try:
        asked = {"host_ip": str(ip_address(address))}
    except ValueError:
        asked = {}
    return {"target": inside, "published": str(outside), **asked, "protocol": "tcp"}


def _bound(source: str, target: str) -> dict[str, Any]:
    """A file or folder of this machine, read only; one that is missing is an error."""
    return {
        "type": "bind",
        "source": source,
        "target": target,
        "read_only": True,
        "bind": {"create_host_path": False},
    }
