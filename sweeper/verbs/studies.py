"""Finished or running studies, opened for the verbs that look at them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeper.config.names import STUDY_NAMES, study_name_fault
from sweeper.config.schema import SweeperConfig
from sweeper.config.stored import read_study, restore
from sweeper.errors import ConfigError, StudyError
from sweeper.tracking.journal import Journal
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome

MAX_LISTED = 12
"""Names of studies that a message lists."""


@dataclass(frozen=True)
class OpenedStudy:
    """A study read from its folder.

    Attributes:
        cfg: the configuration it was started with, with this command's overrides.
        paths: its folder.
        identity: what it is.
        outcomes: every journalled attempt, oldest first.
    """

    cfg: SweeperConfig
    paths: StudyPaths
    identity: dict[str, Any]
    outcomes: list[TrialOutcome]


def take(
    arguments: list[str], key: str, default: str | None = None
) -> tuple[str | None, list[str]]:
    """Split one `key=value` of a verb's own off the overrides. The last one given counts."""
    found, rest = default, []
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if separator and name == key:
            found = value
        else:
            rest.append(argument)
    return found, rest


def choice(arguments: list[str], key: str, allowed: list[str]) -> tuple[str, list[str]]:
    """Like `take`, for a value out of a list; the first is the default.

    Raises:
        ConfigError: any other value.
    """
    value, rest = take(arguments, key, allowed[0])
    if value not in allowed:
        near = difflib.get_close_matches(str(value), allowed, n=1)
        hint = f"did you mean {key}={near[0]}? " if near else ""
        raise ConfigError(f"{key}={value} is not known", f"{hint}use one of {', '.join(allowed)}")
    return str(value), rest


def open_study(arguments: list[str]) -> OpenedStudy:
    """Open the study named by `study=NAME` among `arguments`; the rest are overrides.

    Raises:
        ConfigError: no name, no such study, or a wrong override.
    """
    name, rest = take(arguments, "study")
    folder, rest = studies_folder(rest)
    if not name:
        # A name alone is a common slip: `pareto mine` for `pareto study=mine`.
        bare = next((word for word in rest if re.fullmatch(r"[A-Za-z0-9._]+", word)), "")
        raise ConfigError("which study? study=NAME is missing", _known(folder, bare))
    fault = study_name_fault(name)
    if fault is not None:
        raise ConfigError(f"study={name}: the name {fault}", STUDY_NAMES)
    paths = StudyPaths(folder, name)
    if not paths.study_yaml.exists() and paths.trials_jsonl.exists():
        raise StudyError(
            f"{paths.study_yaml} is gone, so nothing says what the trials beside it measured",
            "restore it from a backup",
        )
    if not paths.study_yaml.exists():
        raise ConfigError(f"there is no study `{name}` in {folder}", _known(folder, name))
    stored = read_study(paths.study_yaml)
    cfg = restore(stored, rest)
    # Set here, not as an override: a folder may be called what no override can say.
    cfg.studies_dir = str(folder)
    return OpenedStudy(cfg, paths, stored.identity, Journal(paths.trials_jsonl).read())


def studies_folder(arguments: list[str]) -> tuple[Path, list[str]]:
    """The folder that `studies_dir=` names, absolute, and the other arguments."""
    named, rest = take(arguments, "studies_dir")
    folder = Path(_unquoted("studies" if named is None else named)).expanduser().absolute()
    if named is not None and (not named.strip() or not folder.is_dir()):
        what = "is a file" if folder.is_file() else "is not there"
        raise ConfigError(
            f"studies_dir={named}: {f'{folder} {what}' if named.strip() else 'it is empty'}",
            "give the folder that holds the studies, not a study itself",
        )
    return folder, rest


def _unquoted(text: str) -> str:
    """Without the quotes in which an override wraps a value with spaces."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _known(folder: Path, name: str) -> str:
    found = sorted(path.parent.name for path in folder.glob("*/study.yaml"))
    if not found:
        return "no study has been run here yet: `python -m sweeper` runs the default one"
    near = difflib.get_close_matches(name, found, n=1)
    hint = f"did you mean study={near[0]}? " if near else ""
    more = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    return f"{hint}studies here: {', '.join(found[:MAX_LISTED])}{more}"
