"""vLLM's own ``--config`` YAML. Pure.

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
from typing import Any

from sweeper.export import secrets
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.machine import degrees
from sweeper.export.origin import origin
from sweeper.export.yaml_text import comments, dump

YAML_NAME = "vllm.yaml"
_OWN_KEYS = ("model", "served_model_name", "host", "port", "revision")


def render(source: ExportInput) -> Files:
    """``vllm.yaml``."""
    return {YAML_NAME: File(config_text(source))}


def config_text(source: ExportInput) -> str:
    """The YAML for ``--config``, with where it comes from."""
    start = f"Start: {source.measured_on.serve} --config {YAML_NAME}"
    lines = [*origin(source), start, *_needs(source)]
    return comments(lines) + config_body(source)


def config_body(source: ExportInput) -> str:
    """The YAML for ``--config`` without comments."""
    return dump(config(source))


def _needs(source: ExportInput) -> list[str]:
    """Variables and secret flags that the file does not set."""
    named = [*source.public_env, *secrets.needed(source), *secrets.lost_flags(source)]
    return [f"Set before the start: {', '.join(named)}."] if named else []


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
    for name, value in own_flags(source).items():
        result.update(_entry(name.replace("_", "-"), value))
    return result


def own_flags(source: ExportInput) -> dict[str, Any]:
    """Flags of the deployment itself as plain data, by underscored name, none of them empty.

    With data parallelism one API server is asked for, as was measured: ``vllm serve`` would start
    one for each rank.
    """
    ranks = degrees(source.public_flags)["data_parallel_size"]
    return {**({"api_server_count": 1} if ranks > 1 else {}), **asked_flags(source)}


def asked_flags(source: ExportInput) -> dict[str, Any]:
    """Flags of the deployment as it was asked for; what names the server is left out."""
    flags = source.public_flags
    own = {name: flags[name] for name in flags if name not in _OWN_KEYS}
    # Enumerations, tuples and mappings become plain; empty ones say nothing.
    plain = json.loads(json.dumps(own))
    return {name: value for name, value in plain.items() if value not in ([], {})}


def _entry(key: str, value: Any) -> dict[str, Any]:
    """One flag as vLLM's loader wants it."""
    if value is False:
        return {key.removeprefix("no-"): True} if key.startswith("no-") else {f"no-{key}": True}
    if not isinstance(value, int | list | dict) and str(value).startswith("-"):
        # As a word of its own it would be taken for another flag.
        return {f"{key}={value}": True}
    return {key: value}
