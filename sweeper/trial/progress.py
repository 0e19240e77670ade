"""What happens while a study runs, told as it passes. Small values; whoever listens decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.trial.outcome import TrialOutcome


@dataclass(frozen=True)
class TrialStarted:
    """A deployment is about to be launched.

    Attributes:
        number: the trial.
        kind: baseline | seed | search | confirm.
        deployment: canonical parameters.
        launches_done: launches finished before this one.
        launches_budget: launches the study may use, None without such a limit.
    """

    number: int
    kind: str
    deployment: Mapping[str, Any]
    launches_done: int
    launches_budget: int | None


@dataclass(frozen=True)
class PhaseChanged:
    """A trial entered a phase; `detail` says what of it, for example the load level."""

    number: int
    phase: str
    detail: str = ""


@dataclass(frozen=True)
class PhaseProgress:
    """How far a trial has come in a phase, one line; told every few seconds."""

    number: int
    phase: str
    detail: str


@dataclass(frozen=True)
class LevelDone:
    """A load level was driven and summarised; `level` is its name.

    `predicted` is True if the figures come from a model of an engine.
    """

    number: int
    level: str
    metrics: Mapping[str, float]
    predicted: bool = False


@dataclass(frozen=True)
class TrialEnded:
    """A trial has an outcome, and the journal has it."""

    outcome: TrialOutcome


@dataclass(frozen=True)
class StudyProgress:
    """Where the study stands after a trial.

    Attributes:
        front_size: operating points on the front.
        best: the best so far, one line; empty before there is one.
        failures: verdict → trials that ended so.
        eta_s: seconds left at the pace so far, None if that cannot be said.
        eta_low_s, eta_high_s: between which it lies in 8 of 10 cases, None if that cannot be said.
        spent: launches, minutes and money used, with their limits, one line.
        outlook: what going on would probably buy, one line; empty before there is a launch.
    """

    front_size: int
    best: str
    failures: Mapping[str, int] = field(default_factory=dict)
    eta_s: float | None = None
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    spent: str = ""
    outlook: str = ""


@dataclass(frozen=True)
class Note:
    """Something worth saying once, for example that tracking failed."""

    text: str


Event = TrialStarted | PhaseChanged | PhaseProgress | LevelDone | TrialEnded | StudyProgress | Note
Listener = Callable[[Event], None]


def silent(_: Event) -> None:
    """A listener that says nothing."""
