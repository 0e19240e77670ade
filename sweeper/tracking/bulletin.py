"""What a running study is doing now, in a small file beside its journal, for whoever looks on.

    tuner ──event──▶ now.json ──▶ `status`, in another process or on another machine of the disk

The file is a courtesy: it is not flushed to the disk, and a disk that refuses it stops nothing. It
goes when the run ends; what a killed tuner leaves says what it was at.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sweeper.errors import StudyError
from sweeper.redaction import redact_data
from sweeper.tracking.paths import atomic_write_text
from sweeper.trial.progress import (
    Event,
    LevelDone,
    PhaseChanged,
    PhaseProgress,
    TrialEnded,
    TrialStarted,
)


@dataclass(frozen=True)
class Now:
    """One trial under way. Times in seconds since 1970, by the clock of the tuner's machine.

    Attributes:
        number: the trial.
        kind: baseline | seed | search | confirm.
        deployment: canonical parameters.
        launch: which launch of the study this is, the first is 1.
        of_launches: launches that the study may use, None without such a limit.
        started_at_s: when the trial began.
        phase: what it is at, and `detail` of it.
        phase_since_s: since when.
        levels_done: load levels that are measured, by name.
    """

    number: int
    kind: str
    deployment: Mapping[str, Any]
    launch: int
    of_launches: int | None
    started_at_s: float
    phase: str = "plan"
    detail: str = ""
    phase_since_s: float = 0.0
    levels_done: list[str] = field(default_factory=list)


class Bulletin:
    """A listener that keeps the file up to date.

    Args:
        path: the file.
        clock: seconds since 1970.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._trials: dict[int, Now] = {}

    def observe(self, event: Event) -> None:
        """Take an event in, and write the file if it changes what stands there."""
        before = dict(self._trials)
        if isinstance(event, TrialStarted):
            self._trials[event.number] = self._begun(event)
        elif isinstance(event, TrialEnded):
            self._trials.pop(event.outcome.number, None)
        elif isinstance(event, PhaseChanged | PhaseProgress | LevelDone):
            self._advance(event)
        if self._trials != before:
            self._write()

    def clear(self) -> None:
        """The run has ended."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _begun(self, event: TrialStarted) -> Now:
        now_s = self._clock()
        return Now(
            event.number,
            event.kind,
            event.deployment,
            event.launches_done + 1,
            event.launches_budget,
            started_at_s=now_s,
            phase_since_s=now_s,
        )

    def _advance(self, event: PhaseChanged | PhaseProgress | LevelDone) -> None:
        trial = self._trials.get(event.number)
        if trial is None:
            return
        if isinstance(event, LevelDone):
            changed = replace(trial, levels_done=[*trial.levels_done, event.level])
        elif event.phase == trial.phase and isinstance(event, PhaseProgress):
            changed = replace(trial, detail=event.detail)
        else:
            changed = replace(
                trial, phase=event.phase, detail=event.detail, phase_since_s=self._clock()
            )
        self._trials[event.number] = changed

    def _write(self) -> None:
        data = redact_data([asdict(trial) for trial in self._trials.values()])
        with suppress(StudyError):
            atomic_write_text(self._path, json.dumps(data) + "\n", flushed=False)


def read(path: Path) -> list[Now]:
    """The trials under way, as the file says; empty where there is none that can be read."""
    try:
        return [Now(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []
