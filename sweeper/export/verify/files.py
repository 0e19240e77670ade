"""The exported ``--config`` YAML as it stands in its folder, read back the way vLLM reads it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.config.yaml_text import read_yaml
from sweeper.errors import StudyError
from sweeper.export.bundle import ExportInput
from sweeper.export.vllm_config import YAML_NAME, config

FACTS_NAME = "recommendation.json"
_NAMES = ("model", "served_model_name", "host", "port", "revision")
_ADDED = ("api_server_count",)
"""Flags that the export adds to those of the deployment."""
_ANEW = "write it anew: the same command without verify=true"

Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Exported:
    """What an exported file starts.

    Attributes:
        path: of the YAML.
        model: what the engine is given.
        revision: of the model, None if none is named.
        served_names: what the server calls it.
        flags: engine flags, underscored names → values; names and address left out.
        env: environment variables that belong to it.
        sha256: of the file.
    """

    path: Path
    model: str
    revision: str | None
    served_names: tuple[str, ...]
    flags: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""


@dataclass(frozen=True)
class Origin:
    """What `recommendation.json` says of the files beside it.

    Attributes:
        trial, level: of the operating point.
        edits: what the YAML says otherwise: name → (as exported, as it stands).
    """

    trial: int
    level: str
    edits: Mapping[str, Pair]


def parse_flags(data: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of the YAML by underscored name, the file's own ways of saying no turned back. Pure.

    See `sweeper.export.vllm_config` for why ``no-x: true`` and ``x=-1: true`` are written.
    """
    found: dict[str, Any] = {}
    for key, value in data.items():
        word, given = str(key), value
        if "=" in word and given is True:
            word, _, text = word.partition("=")
            given = _number(text)
        name = word.lstrip("-").replace("-", "_")
        if name.startswith("no_") and given is True:
            name, given = name.removeprefix("no_"), False
        found[name] = given
    return found


def read_exported(folder: Path) -> Exported:
    """The exported file in a folder, and the environment exported with it.

    Raises:
        StudyError: there is none, or it cannot be read.
    """
    path = folder / YAML_NAME
    if not path.is_file():
        raise StudyError(f"there is no {path} to start from", _ANEW)
    text = path.read_bytes()
    entries = parse_flags(_mapping(path))
    model = entries.get("model")
    if not isinstance(model, str) or not model:
        raise StudyError(f"{path} names no model", f"give it a line `model: ...`, or {_ANEW}")
    names = entries.get("served_model_name", model)
    revision = entries.get("revision")
    return Exported(
        path=path.resolve(),
        model=model,
        revision=None if revision is None else str(revision),
        served_names=tuple(map(str, names)) if isinstance(names, list) else (str(names),),
        flags={name: value for name, value in entries.items() if name not in _NAMES},
        env=_environment(folder),
        sha256=hashlib.sha256(text).hexdigest(),
    )


def differences(exported: Exported, source: ExportInput) -> dict[str, Pair]:
    """What the file says otherwise than what was measured: name → (measured, in the file). Pure."""
    measured = parse_flags(json.loads(json.dumps(config(source))))
    return _differ(_settings(measured), {"model": exported.model, **_own(exported)})


def origin_of(folder: Path) -> Origin | None:
    """Which point the files in a folder were exported for; None if there are none.

    Raises:
        StudyError: the YAML is there, and what belongs beside it is not, or cannot be read.
    """
    path, facts_path = folder / YAML_NAME, folder / FACTS_NAME
    if not path.is_file():
        return None
    try:
        facts = json.loads(facts_path.read_text(encoding="utf-8"))
        point = facts["recommendation"]["point"]
        trial, level = int(point["trial"]), str(point["level"])
        flags, model = dict(facts["flags"]), facts["model"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(
            f"{path} stands without a {FACTS_NAME} that says what it is for "
            f"({type(error).__name__}: {error})",
            f"keep a copy if you edited it, then {_ANEW}",
        ) from error
    exported = read_exported(folder)
    named = {"revision": facts["revision"]} if facts.get("revision") else {}
    told = _settings({**flags, **named, "model": model})
    stands = {name: value for name, value in _own(exported).items() if name not in _ADDED}
    return Origin(trial, level, _differ(told, {"model": exported.model, **stands}))


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _own(exported: Exported) -> dict[str, Any]:
    named = {} if exported.revision is None else {"revision": exported.revision}
    return {**exported.flags, **named}


def _settings(entries: Mapping[str, Any]) -> dict[str, Any]:
    """What decides how a server runs: not where it listens, nor what it is called."""
    hidden = {"served_model_name", "host", "port"}
    return {
        name: value
        for name, value in entries.items()
        if name not in hidden and value not in (None, [], {})
    }


def _differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Pair]:
    names = sorted({*before, *after})
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _mapping(path: Path) -> Mapping[str, Any]:
    data = read_yaml(path, str(path), _ANEW)
    if not isinstance(data, Mapping):
        raise StudyError(f"{path} is not a list of settings", _ANEW)
    return data


def _environment(folder: Path) -> dict[str, str]:
    try:
        told = json.loads((folder / FACTS_NAME).read_text(encoding="utf-8")).get("env", {})
    except (OSError, ValueError, AttributeError):
        return {}
    return {str(name): str(value) for name, value in dict(told).items()}
