"""The running study in the terminal: one panel that renews itself, or plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import IO, Any

from sweeper.redaction import shown
from sweeper.report.words import deployment_text, number, seconds
from sweeper.trial.progress import (
    Event,
    LevelDone,
    Note,
    PhaseChanged,
    PhaseProgress,
    StudyProgress,
    TrialEnded,
    TrialStarted,
)
from sweeper.trial.run import REAL
from sweeper.verdicts import Verdict

RECENT_LINES = 8
PROGRESS_EVERY_S = 30.0
"""Of what a panel shows every few seconds, plain lines (a log, say) tell this much."""


@dataclass
class ViewState:
    """What the panel shows; changed by events only.

    Attributes:
        started_s: start of the study on the monotonic clock.
        trial: what runs now, None between trials.
        trial_started_s: its start on the same clock.
        phase: its phase and what of it.
        progress: where the study stands.
        recent: last lines of what happened.
    """

    started_s: float
    trial: TrialStarted | None = None
    trial_started_s: float = 0.0
    phase: str = ""
    progress: StudyProgress | None = None
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT_LINES))

    def apply(self, event: Event, now_s: float) -> None:
        """Take an event in."""
        if isinstance(event, TrialStarted):
            self.trial, self.trial_started_s, self.phase = event, now_s, "plan"
        elif isinstance(event, PhaseChanged | PhaseProgress):
            self.phase = _phase(event)
        elif isinstance(event, TrialEnded):
            self.trial, self.phase = None, ""
        elif isinstance(event, StudyProgress):
            self.progress = event
        line = shown(line_of(event))
        if line and not isinstance(
            event, PhaseChanged | PhaseProgress | StudyProgress | TrialStarted
        ):
            self.recent.extend(line.splitlines()[:RECENT_LINES])


class LiveView:
    """Context manager and listener in one: ``with LiveView(name) as listener``.

    Args:
        name: the study's name.
        stream: where to write; None means standard output at the time of entering.
        clock: seconds on a monotonic clock.
    """

    def __init__(
        self,
        name: str,
        stream: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._stream = stream
        self._clock = clock
        self._state = ViewState(started_s=clock())
        self._live: Any = None
        self._progress_told_s = float("-inf")
        self._progress_words = ""
        # Trials may report from threads of their own.
        self._lock = threading.Lock()

    def __enter__(self) -> LiveView:
        self._state.started_s = self._clock()
        stream = self._stream or sys.stdout
        self._stream = stream
        if stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                get_renderable=self._panel,
                console=Console(file=stream),
                refresh_per_second=2,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __call__(self, event: Event) -> None:
        """Show an event."""
        with self._lock:
            self._state.apply(event, self._clock())
            if self._live is None:
                if not isinstance(event, PhaseProgress) or self._is_due(event):
                    self._print(shown(line_of(event)))
            elif isinstance(event, TrialEnded | Note):
                self._live.console.print(
                    shown(line_of(event)), markup=False, highlight=False, soft_wrap=True
                )

    def _is_due(self, event: PhaseProgress) -> bool:
        """Whether it says something new, and not only further on in the same count."""
        now_s, words = self._clock(), re.split(r"\d", event.detail, maxsplit=1)[0]
        is_same = words == self._progress_words
        if is_same and now_s - self._progress_told_s < PROGRESS_EVERY_S:
            return False
        self._progress_told_s, self._progress_words = now_s, words
        return True

    def _print(self, line: str) -> None:
        if line:
            stamp = datetime.now().strftime("%H:%M:%S")
            print(f"{stamp}  {line}", file=self._stream or sys.stdout, flush=True)

    def _panel(self) -> Any:
        return panel(self._name, self._state, self._clock())


def line_of(event: Event) -> str:
    """An event as plain text, empty if it says nothing that another line does not."""
    if isinstance(event, TrialStarted):
        return f"{_launch_count(event)}, trial {event.number} ({event.kind}): " + deployment_text(
            event.deployment
        )
    if isinstance(event, PhaseChanged | PhaseProgress):
        return f"trial {event.number}: {_phase(event)}"
    if isinstance(event, LevelDone):
        mark = " (predicted)" if event.predicted else ""
        return f"trial {event.number}: {event.level}: {_figures(event.metrics)}{mark}"
    if isinstance(event, TrialEnded):
        return _ended(event)
    if isinstance(event, StudyProgress):
        return _standing(event)
    return event.text


def panel(name: str, state: ViewState, now_s: float) -> Any:
    """The live panel as a rich renderable."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _fields(state, now_s):
        grid.add_row(label, Text(shown(text)))
    recent = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in state.recent]
    content = Group(grid, Text(""), *recent) if recent else grid
    return Panel(content, title=f"sweeper · {name}", title_align="left", border_style="cyan")


def _fields(state: ViewState, now_s: float) -> list[tuple[str, str]]:
    trial, progress = state.trial, state.progress
    fields = []
    if trial is not None:
        fields += [
            ("launch", f"{_launch_count(trial)} · trial {trial.number} ({trial.kind})"),
            ("deployment", deployment_text(trial.deployment)),
            ("phase", f"{state.phase} · {seconds(now_s - state.trial_started_s)} in this trial"),
        ]
    left = "not known yet"
    if progress is not None:
        left = eta_text(progress) or left
        fields += [
            ("best so far", progress.best or "nothing measured yet"),
            ("front", f"{progress.front_size} operating points"),
            ("failures", _failures(progress)),
        ]
        fields += [("outlook", progress.outlook)] if progress.outlook else []
    fields.append(("elapsed", f"{seconds(now_s - state.started_s)} · left: {left}"))
    return fields


def _phase(event: PhaseChanged | PhaseProgress) -> str:
    colon = ":" if isinstance(event, PhaseProgress) else ""
    return f"{event.phase}{colon} {event.detail}".rstrip()


def _launch_count(event: TrialStarted) -> str:
    of = f" of {event.launches_budget}" if event.launches_budget is not None else ""
    return f"launch {event.launches_done + 1}{of}"


def _ended(event: TrialEnded) -> str:
    outcome = event.outcome
    total = outcome.timings_s.get("total")
    clock = " of virtual time" if REAL in outcome.timings_s else ""
    took = f" after {seconds(total)}{clock}" if total is not None else ""
    if outcome.verdict is not Verdict.OK:
        return (
            f"trial {outcome.number}: {outcome.verdict} in {outcome.phase}{took}: {outcome.cause}"
        )
    if outcome.partial is not None:
        return f"trial {outcome.number}: OK{took}: {outcome.partial}"
    valid = f"{len(outcome.valid_points)} of {len(outcome.points)} points valid"
    if outcome.skipped:
        valid += f", {', '.join(outcome.skipped)} left out"
    score = outcome.quality
    quality = "" if score is None else f", {score.name} {score.shown}"
    return f"trial {outcome.number}: OK{took}: {valid}{quality}"


def _standing(progress: StudyProgress) -> str:
    eta = eta_text(progress)
    left = f"; {eta} left" if eta else ""
    left += f"; {progress.outlook}" if progress.outlook else ""
    return (
        f"best so far: {progress.best or 'nothing measured yet'}; front: {progress.front_size} "
        f"points; failures: {_failures(progress)}{left}"
    )


def eta_text(progress: StudyProgress) -> str:
    """Time left and how sure that is; empty if it is not known."""
    if progress.eta_s is None:
        return ""
    about = f"about {seconds(progress.eta_s)}"
    low, high = progress.eta_low_s, progress.eta_high_s
    if low is None or high is None or seconds(low) == seconds(high):
        return about
    return f"{about} ({seconds(low)} to {seconds(high)})"


def _failures(progress: StudyProgress) -> str:
    counts = progress.failures.items()
    return ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts)) or "none"


def _figures(metrics: Any) -> str:
    wanted = {
        "output_tokens_per_s": "tokens/s",
        "ttft_p95_ms": "ms TTFT P95",
        "e2e_p95_ms": "ms E2E P95",
    }
    found = [f"{number(metrics[key])} {unit}" for key, unit in wanted.items() if key in metrics]
    return ", ".join(found) or "nothing measured"
