"""Find a study by its name or by its folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sweeper.config.stored import read_study
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError
from sweeper.tracking.paths import StudyPaths

_FILES = ("study.yaml", "trials.jsonl")


def find(
    study: str | os.PathLike[str], studies_dir: str | os.PathLike[str]
) -> tuple[StudyPaths, dict[str, Any]]:
    """The paths of a study, and the configuration it was started with.

    Of a folder that came without its ``study.yaml`` the configuration is empty.

    Raises:
        ConfigError: there is no study, or its ``study.yaml`` cannot be read.
    """
    given, folder = os.fspath(study), Path(studies_dir)
    is_path = not isinstance(study, str) or "/" in given
    places = [Path(given)] if is_path else [folder / given, Path(given)]
    found = next((place for place in places if given and _is_study(place)), None)
    if found is None:
        raise _none(given, places[0] if is_path else folder, is_path=is_path)
    root = found.absolute()
    paths = StudyPaths(root.parent, root.name)
    if not paths.study_yaml.exists():
        return paths, {}
    return paths, read_study(paths.study_yaml).config


def _is_study(place: Path) -> bool:
    return any((place / name).is_file() for name in _FILES)


def _none(given: str, place: Path, *, is_path: bool) -> ConfigError:
    """What was looked for, where, and what is there instead."""
    if is_path:
        if place.is_file():
            return ConfigError(
                f"{given} is a file, not a study's folder",
                f"give its folder: load_study({str(place.parent)!r})",
            )
        has = "has neither " + " nor ".join(_FILES) if place.is_dir() else "does not exist"
        return ConfigError(f"{place.absolute()} {has}", _known(place.parent, place.name))
    return ConfigError(
        f"there is no study `{given}` in {place.absolute()}",
        _known(place, given) + "; studies elsewhere are named by their folder, or with "
        "load_study(name, studies_dir=FOLDER)",
    )


def _known(folder: Path, name: str) -> str:
    found = sorted({path.parent.name for file in _FILES for path in folder.glob(f"*/{file}")})
    if not found:
        return f"no study is in {folder.absolute()}: `python -m sweeper` runs one"
    return did_you_mean(name, found, what="studies there")
