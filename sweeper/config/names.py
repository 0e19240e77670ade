"""Names that become folders, variables and words of files: what they may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError

MAX_STUDY_NAME = 100
"""Characters; a study's name is a folder's name."""

STUDY_NAMES = "use letters, digits, '.', '_' and '-', for example study=qwen7b-chat"
"""What a name may be, as the remedy of any other."""

# Beside the studies, in the same folder; and what no folder can be called on Windows, whoever a
# study may be given to.
_OURS = frozenset({"mlflow.db", "mlflow-artifacts", "readme.md"})
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What no command line, variable or UTF-8 file can hold, and what would steer a terminal.
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ENV = "env."


def study_name(cfg: SweeperConfig) -> str:
    """The study's name: given, or derived as ``{model}-{space}-{engine}``."""
    if cfg.study is not None:
        return cfg.study
    parts = (cfg.model.name, cfg.space.name, cfg.engine.name)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-.")
    return name[:MAX_STUDY_NAME].rstrip(".") or "study"


def study_name_fault(name: str) -> str | None:
    """Why `name` cannot name a study, or None if it can.

    An accepted name is one folder below ``studies_dir``, whatever that is: it has no separator, is
    not ``.`` or ``..``, and is plain ASCII, so that no two look alike.
    """
    odd = re.search(r"[^A-Za-z0-9._-]", name)
    lower = name.lower()
    faults = {
        "is empty": not name.strip(),
        "has a slash": "/" in name or "\\" in name,
        f"begins with '{name[:1]}'": name.startswith((".", "-")),
        f"has {len(name)} characters, more than {MAX_STUDY_NAME}": len(name) > MAX_STUDY_NAME,
        f"has the character {(odd.group() if odd else '')!r}": odd is not None,
        "ends with '.'": name.endswith("."),
        "is taken by something else": lower in _OURS or _DEVICES.fullmatch(lower) is not None,
    }
    return next((fault for fault, applies in faults.items() if applies), None)


def check_names(cfg: SweeperConfig) -> None:
    """Check names of environment variables, and that every text can be written and passed on.

    Raises:
        ConfigError: names the key.
    """
    given = [f"engine.{_ENV}{name}" for name in cfg.engine.env]
    for place in ("fixed", "parameters"):
        names = [str(name) for name in getattr(cfg.space, place)]
        given += [f"space.{place}.{name}" for name in names if name.startswith(_ENV)]
    for key in given:
        name = key.partition(f".{_ENV}")[2]
        if not _VARIABLE.fullmatch(name):
            raise ConfigError(
                f"{key!r} names an environment variable that cannot be one",
                "use letters, digits and '_', and no digit first",
            )
    for key, text in leaves(asdict(cfg)):
        if key.startswith("engine.options."):
            continue  # of one engine only, which reads them from a file
        odd = _UNFIT.search(key) or _UNFIT.search(text)
        if odd:
            raise ConfigError(
                f"{ascii(key)[1:-1]} has the character {odd.group()!r}, which no file or command "
                "line can hold",
                "write it in plain UTF-8 text",
            )


def leaves(data: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, text) of every text in nested plain data, items of a list under the list's."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from leaves(value, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(data, list | tuple):
        for value in data:
            yield from leaves(value, prefix)
    elif isinstance(data, str):
        yield prefix, data
