"""Looks at folders, and for what earlier studies left running."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sweeper.doctor.facts import Folder
from sweeper.doctor.gather_host import nearest, room
from sweeper.doctor.place_checks import CACHE, HUB, STUDIES, TEMPORARY
from sweeper.engine.orphans import LaunchRecord
from sweeper.models.hub import hub_cache
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.paths import StudyPaths
from sweeper.tracking.shared_disk import is_network, locks_stay_here


def folders(studies: Path, cache: Path) -> tuple[Folder, ...]:
    """Where a study, the models and the engine write."""
    return (
        folder(STUDIES, "studies_dir=", studies),
        folder(CACHE, "cache_dir=", cache),
        folder(HUB, "HF_HOME", hub_cache()),
        folder(TEMPORARY, "TMPDIR", Path(tempfile.gettempdir())),
    )


def folder(what: str, key: str, path: Path) -> Folder:
    """Whether a file can be made there, or the folder itself."""
    place = nearest(path)
    return Folder(
        what,
        key,
        str(path),
        error=_error(place),
        room=room(path),
        local_locks=what == STUDIES and locks_stay_here(place),
        network=is_network(place),
    )


def _error(place: Path) -> str:
    if not place.is_dir():
        return f"{place} is a file, not a folder" if place.exists() else f"{place} leads nowhere"
    try:
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def orphans(studies: Path) -> dict[str, list[int]]:
    """Study → living processes of a launch whose tuner does not live any more."""
    found: dict[str, list[int]] = {}
    for note in sorted(studies.glob("*/launch.json")):
        paths = StudyPaths(studies, note.parent.name)
        record = LaunchRecord(paths.launch_record)
        if record.tuner_lives() or StudyLock(paths.lock).is_held():
            continue
        family = record.read()
        living = family.living() if family is not None else set()
        if living:
            found[paths.name] = sorted(member.pid for member in living)
    return found
