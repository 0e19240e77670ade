"""MLflow as a mirror of the journal: useful, never needed. A parent run a study, a child a trial.

The mirror works in a thread of its own. A study waits for it while it works, because nothing is
measured then; it hardly waits for one that hangs, and not at all once its patience is used:

    record ──► wake the thread ──► done? go on
                   │                 └─ hangs? go on too, it catches up between measurements
                   └─ fails? one warning, and no new try before a pause that doubles

Only `MlflowClient` with explicit run ids is used: the fluent interface keeps an active run a
thread, and two studies in one process would write into each other's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import SweeperConfig
from sweeper.errors import StudyError
from sweeper.redaction import shown
from sweeper.tracking.background import Worker
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_client import Pace
from sweeper.tracking.mlflow_mirror import Mirror, StudySummary
from sweeper.tracking.mlflow_store import MlflowStore
from sweeper.tracking.mlflow_tags import StudyTags
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Event, PhaseChanged, TrialEnded, TrialStarted
from sweeper.verdicts import Phase

__all__ = ["MlflowTracker", "Patience", "StudySummary", "SyncReport"]

_MEASURING = {Phase.WARMUP, Phase.LOAD, Phase.QUALITY}


@dataclass(frozen=True)
class Patience:
    """How long a study waits for a mirror that hangs; one that works is waited for.

    Attributes:
        study_s: seconds in all, from the start of a study to its end.
        once_s: seconds after one trial.
        end_quiet_s: seconds without an answer at the study's end.
        end_s: seconds of hanging in all at the study's end.
        healthy_s: a wait that hung no longer than this and was served is not counted.
        first_pause_s: until the next try after a failure; it doubles with every further one.
        longest_pause_s: what it never exceeds.
    """

    study_s: float = 4.0
    once_s: float = 1.5
    end_quiet_s: float = 4.0
    end_s: float = 20.0
    healthy_s: float = 1.0
    first_pause_s: float = 5.0
    longest_pause_s: float = 300.0


@dataclass(frozen=True)
class SyncReport:
    """What a sync did: trials newly logged, repaired, and already there; error if it broke off.

    `mirrored_by` names the process that mirrors the study at this moment; nothing was done then.
    """

    logged: int = 0
    repaired: int = 0
    present: int = 0
    error: str | None = None
    mirrored_by: str | None = None


class MlflowTracker:
    """Mirrors outcomes into MLflow. Nothing it does can stop a study, nor make it wait for long.

    Used once: either `start`, `replay`, `record` as trials end, `finish`; or `sync` alone.

    Args:
        cfg: the study's configuration; `tracking` says where, `space` which columns there are.
        paths: the study's paths.
        identity: what makes the study this study (nested plain dict).
        study_name: its name.
        warn: told once when tracking fails, and once when it works again; from any thread.
        patience: how long to wait for a mirror that hangs.
    """

    def __init__(
        self,
        cfg: SweeperConfig,
        paths: StudyPaths,
        identity: Mapping[str, Any],
        study_name: str,
        *,
        warn: Callable[[str], None] = lambda _: None,
        patience: Patience | None = None,
    ) -> None:
        self._enabled = cfg.tracking.enabled
        self._paths = paths
        self._warn = warn
        self._patience = patience or Patience()
        self._left_s = self._patience.study_s
        self._gate = _Gate()
        self._store = MlflowStore(
            cfg.tracking, paths, StudyTags.of(identity, cfg, study_name), self._gate
        )
        self._mirror = Mirror(self._store, paths)
        self._lock = StudyLock(paths.mirror_lock)
        self._worker = Worker(self._work, "mlflow-mirror")
        self._gate.answered = self._worker.tick
        self._timeout_s = cfg.tracking.timeout_s
        self._outcomes: list[TrialOutcome] = []
        self._live = True
        self._has_lock = False
        self._cared_for_others = False
        self._summary: StudySummary | None = None
        self._error: str | None = None
        self._mirrored_by: str | None = None
        self._failures = 0
        self._not_before_s = 0.0
        self._said: set[str] = set()

    @property
    def uri(self) -> str:
        """The tracking URI in use, without a password."""
        return self._store.uri

    def start(self) -> None:
        """Open the parent run, so that a running study can be seen."""
        if self._enabled and self._import():
            self._go_on()

    def replay(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Log what a study measured in earlier runs, as far as it is missing."""
        self._outcomes.extend(outcomes)
        self._go_on()

    def record(self, outcome: TrialOutcome) -> None:
        """Log one trial, after those that could not be logged earlier."""
        self._outcomes.append(outcome)
        self._gate.set(closed=False)
        self._go_on()

    def observe(self, event: Event) -> None:
        """Keep still while something is measured: this process drives the load too."""
        if isinstance(event, PhaseChanged):
            self._gate.set(closed=event.phase in _MEASURING)
        elif isinstance(event, TrialEnded | TrialStarted):
            self._gate.set(closed=False)

    def finish(self, summary: StudySummary) -> None:
        """Mark the front and close the parent run. The first call counts."""
        if not self._enabled or self._summary is not None:
            return
        self._summary = summary
        self._gate.set(closed=False)
        if not self._import():
            return
        self._worker.wake()
        waited = self._worker.wait(
            blocked_s=self._patience.end_s, quiet_s=self._patience.end_quiet_s
        )
        self.close()
        if not waited.done:
            self._fail("it does not answer, or not in time")

    def sync(
        self, outcomes: Sequence[TrialOutcome], summary: StudySummary | None = None
    ) -> SyncReport:
        """Bring MLflow up to date with the journal; doing it twice changes nothing.

        Args:
            outcomes: the journal.
            summary: what to close the parent run with; None if a tuner works on the study.

        Returns:
            Counts, and the error if it broke off in the middle. Waits as long as MLflow answers.
        """
        if not self._enabled:
            return SyncReport()
        self._live, self._cared_for_others = False, True
        self._outcomes, self._summary = list(outcomes), summary
        if self._import():
            self._worker.wake()
            quiet_s = 3 * self._timeout_s
            waited = self._worker.wait(blocked_s=float("inf"), quiet_s=quiet_s)
            self.close()
            if not waited.done:
                self._fail(f"no answer for {quiet_s:g} s")
        counts = self._mirror.counts
        return SyncReport(
            counts.logged, counts.repaired, counts.present, self._error, self._mirrored_by
        )

    def close(self) -> None:
        """Let another process mirror the study; a call that still hangs does no more."""
        self._gate.end()
        if self._has_lock:
            self._lock.__exit__(None, None, None)
            self._has_lock = False

    def _go_on(self) -> None:
        if not self._enabled:
            return
        self._worker.wake()
        limit_s = min(self._left_s, self._patience.once_s)
        if limit_s <= 0:
            return
        waited = self._worker.wait(blocked_s=limit_s)
        if not waited.done or waited.blocked_s > self._patience.healthy_s:
            self._left_s -= waited.blocked_s

    def _import(self) -> bool:
        """Import MLflow in the caller's thread; without it there is no mirror in this run."""
        try:
            self._store.prepare()
        except Exception as error:
            self._enabled = False
            self._fail(_one_line(error))
            return False
        return True

    def _work(self) -> None:
        """Everything there is to do now; runs in the mirror's thread."""
        if self._summary is None and time.monotonic() < self._not_before_s:
            return
        try:
            self._take_lock()
            self._mirror.catch_up(self._outcomes, live=self._live)
            if not self._cared_for_others:
                self._mirror.end_orphans()
                self._cared_for_others = True
            if self._summary is not None:
                self._mirror.close(self._summary, self._outcomes)
        except _EndedError:
            return
        except _MirroredElsewhereError as other:
            self._mirrored_by = str(other)
            self._fail(f"another process mirrors this study: {other}")
        except Exception as error:
            # MLflow raises whatever its database, its HTTP client or its server raises; the journal
            # already has the data, so that any of them may only cost the mirror.
            self._mirror.forget()
            self._fail(_one_line(error))
        else:
            self._succeed()

    def _take_lock(self) -> None:
        """Two processes that log one study would log it twice."""
        if self._has_lock:
            return
        try:
            self._lock.__enter__()
        except StudyError as refusal:
            raise _MirroredElsewhereError(refusal.message) from refusal
        self._has_lock = True

    def _fail(self, text: str) -> None:
        self._error = text
        pause_s = self._patience.first_pause_s * 2**self._failures
        self._not_before_s = time.monotonic() + min(pause_s, self._patience.longest_pause_s)
        self._failures += 1
        self._say(
            "failed",
            f"MLflow tracking at {self.uri} failed ({text}); the study goes on, its journal "
            f"has everything. Later: python -m sweeper sync study={self._paths.name}",
        )

    def _succeed(self) -> None:
        if self._failures:
            self._say("recovered", "MLflow tracking works again")
        self._failures, self._error, self._not_before_s = 0, None, 0.0
        if self._mirror.left_out:
            self._say("left out", f"MLflow did not take everything, {self._mirror.left_out[0]}")

    def _say(self, what: str, text: str) -> None:
        """Say one kind of thing once: a server that comes and goes must not fill the screen."""
        if what not in self._said:
            self._said.add(what)
            with suppress(Exception):
                self._warn(text)


class _EndedError(BaseException):
    """Nobody waits for the mirror any more. No failure of MLflow, so no `Exception` either."""


class _MirroredElsewhereError(Exception):
    """Another process logs this study now."""


class _Gate(Pace):
    """Holds back every call to MLflow while something is measured."""

    def __init__(self) -> None:
        self.answered: Callable[[], None] = lambda: None
        self._changed = threading.Condition()
        self._is_closed = False
        self._has_ended = False

    def set(self, *, closed: bool) -> None:
        with self._changed:
            self._is_closed = closed
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def before(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or not self._is_closed)
            if self._has_ended:
                raise _EndedError

    def after(self) -> None:
        self.answered()


def _one_line(error: Exception) -> str:
    lines = shown(str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
