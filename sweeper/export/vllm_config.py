"""vLLM's own ``--config`` YAML, and a script that starts a server from it. Pure.

How vLLM reads the file (``FlexibleArgumentParser.load_config_file``) decides its form:

- each key becomes ``--key``, looked up as written: hyphens, never underscores;
- ``true`` becomes the bare flag. ``false`` becomes ``--no-key`` only in newer versions, and even
  there not under ``vllm serve``, where it is silently dropped; ``no-key: true`` works everywhere;
- a list becomes the flag with several values; an empty one is dropped;
- a mapping becomes the flag with its JSON text;
- anything else is turned into text, ``null`` into the word "None": it must not appear.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

import yaml

from sweeper.export.bundle import EXECUTABLE, ExportInput, File, Files
from sweeper.export.checkpoint import made_lines
from sweeper.redaction import printable

YAML_NAME, SCRIPT_NAME = "vllm.yaml", "start.sh"
_OWN_KEYS = ("model", "served_model_name", "host", "port", "revision")


def render(source: ExportInput) -> Files:
    """``vllm.yaml`` and ``start.sh``."""
    return {
        YAML_NAME: File(config_text(source)),
        SCRIPT_NAME: File(script_text(source), EXECUTABLE),
    }


def config_text(source: ExportInput) -> str:
    """The YAML for ``--config``."""
    point = source.recommendation
    word = "PREDICTED, NOT MEASURED," if point.predicted else "measured"
    head = [
        f"# {_comment(source.study)}, trial {point.trial}, {word} at {_comment(point.level)}.",
        "# Start: ./start.sh, or `vllm serve --config vllm.yaml` (then set what start.sh exports).",
        *(f"# {_comment(line)}" for line in made_lines(source)),
    ]
    return "\n".join(head) + "\n" + _dumped(config(source))


def _dumped(data: dict[str, Any]) -> str:
    """YAML that is read back as it was; letters of other scripts as they are where that holds."""

    def dump(*, allow_unicode: bool) -> str:
        return yaml.safe_dump(
            data,
            sort_keys=False,
            allow_unicode=allow_unicode,
            default_flow_style=False,
            width=1000,
        )

    plain = dump(allow_unicode=True)
    # Line ends of other scripts (NEL) come back as spaces unless they are escaped.
    return plain if yaml.safe_load(plain) == data else dump(allow_unicode=False)


def config(source: ExportInput) -> dict[str, Any]:
    """The YAML's content: what names the server first, then the flags by name."""
    result: dict[str, Any] = {
        "model": source.model_path,
        **_entry("served-model-name", source.served_name),
        "host": source.host,
        "port": source.port,
    }
    if source.revision is not None:
        result["revision"] = source.revision
    for name, value in source.public_flags.items():
        if name not in _OWN_KEYS:
            result.update(_entry(name.replace("_", "-"), value))
    return result


def _entry(key: str, value: Any) -> dict[str, Any]:
    """One flag as vLLM's loader wants it; nothing for an empty list or mapping."""
    value = json.loads(json.dumps(value))  # enumerations, tuples and mappings become plain
    if value is False:
        return {key.removeprefix("no-"): True} if key.startswith("no-") else {f"no-{key}": True}
    if isinstance(value, list | dict):
        return {key: value} if value else {}
    if not isinstance(value, int) and str(value).startswith("-"):
        # As a word of its own it would be taken for another flag.
        return {f"{key}={value}": True}
    return {key: value}


def _comment(text: str) -> str:
    """Text as part of a comment, which it cannot end."""
    return " ".join(printable(text).split())


def script_text(source: ExportInput) -> str:
    """The start script: environment, then the server in the shell's place."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in source.public_env.items()]
    wanted = [
        f"# Left out, because it is secret: set {_comment(name)} yourself."
        for name in source.left_out
    ]
    lines = [
        "#!/bin/sh",
        "# Starts the recommended server. PYTHON names the interpreter that vLLM is installed in.",
        "# More flags can be given: they win over vllm.yaml (./start.sh --port 9000).",
        "set -eu",
        'cd -- "$(dirname -- "$0")"',
        *wanted,
        *exports,
        'exec "${PYTHON:-python3}" -m vllm.entrypoints.openai.api_server --config vllm.yaml "$@"',
    ]
    return "\n".join(lines) + "\n"
