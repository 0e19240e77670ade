"""What a trial has measured so far; survives whatever ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sweeper.load.records import LevelRun
from sweeper.quality.reference import Reference
from sweeper.trial.cutting import Cut
from sweeper.trial.outcome import Point, QualityScore
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Listener, PhaseChanged
from sweeper.verdicts import Diagnosis, Phase


@dataclass
class TrialState:
    """A trial under way.

    Attributes:
        plan, listener: what it was given.
        phase: the phase it is in.
        points: one a load level.
        last_run: the level driven last, None before the first.
        most_running: most requests that the server was seen to run at once.
        quality, reference: as far as they have come.
        timings_s: seconds by phase.
        manifest: the conditions.
        learnt: figures of the launch.
        halt: why nothing may be launched after this trial, None in all ordinary cases.
        cut: why the launch ended before its ladder did, None if it did not.
        skipped: load level → why it was left out.
        virtual_s: what the launch has cost on the engine's own clock, None where time is real.
    """

    plan: TrialPlan
    listener: Listener
    phase: Phase = Phase.START
    points: list[Point] = field(default_factory=list)
    last_run: LevelRun | None = None
    most_running: float = 0.0
    quality: QualityScore | None = None
    reference: Reference | None = None
    timings_s: dict[str, float] = field(default_factory=dict)
    manifest: dict[str, object] = field(default_factory=dict)
    learnt: dict[str, object] = field(default_factory=dict)
    halt: Diagnosis | None = None
    cut: Cut | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    virtual_s: Callable[[], float] | None = None

    @property
    def hung(self) -> str | None:
        """How the last level showed that the server hangs, None if it did not."""
        run = self.last_run
        return run.ended_early if run is not None and run.hung else None

    @property
    def ended_early(self) -> bool:
        """True if the last level was broken off: the server died, hung, or failed all requests."""
        return self.last_run is not None and self.last_run.ended_early is not None

    @contextmanager
    def during(self, phase: Phase, detail: str = "") -> Iterator[None]:
        """Announce a phase and add its seconds, on the clock of the engine, to the timings."""
        self.phase = phase
        self.listener(PhaseChanged(self.plan.number, phase, detail))
        clock = self.virtual_s or time.monotonic
        started = clock()
        try:
            yield
        finally:
            spent = clock() - started
            self.timings_s[phase] = round(self.timings_s.get(phase, 0.0) + spent, 3)
