"""The note of the trial being launched: what a killed tuner was at, told to the next one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sweeper.tracking.paths import atomic_write_text, reserve_beside
from sweeper.tracking.room import secure_room
from sweeper.trial.outcome import TrialOutcome


@dataclass(frozen=True)
class InFlight:
    """One launch.

    Attributes:
        number: the trial's number.
        attempt: 1, or more for a retry.
        kind: baseline | seed | search.
        deployment: canonical parameters.
    """

    number: int
    attempt: int
    kind: str
    deployment: dict[str, Any]


def note(path: Path, launch: InFlight) -> None:
    """Write the note, before anything is started.

    Raises:
        StudyError: the launch could not be recorded: the disk is full, the folder gone or
            read-only. It must not be started then.
    """
    secure_room(reserve_beside(path))
    # Not flushed to the disk: after a power cut nothing runs that the note could tell of.
    atomic_write_text(path, json.dumps(asdict(launch)), flushed=False)


def clear(path: Path) -> None:
    """Remove the note, once the outcome is journalled; one that stays names a known trial."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def interrupted(path: Path, outcomes: Iterable[TrialOutcome]) -> InFlight | None:
    """The launch an earlier tuner did not live to journal; None if there is none.

    A note that cannot be read costs the retry of one trial and nothing else.
    """
    try:
        found = InFlight(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    journalled = {(outcome.number, outcome.attempt) for outcome in outcomes}
    if (found.number, found.attempt) in journalled:
        clear(path)  # its tuner died between the journal and this
        return None
    return found
