"""MLflow as a mirror of the journal: useful, never needed. A parent run a study, a child a trial.

Only `MlflowClient` with explicit run ids is used: the fluent interface keeps an active run a
thread, and two studies in one process would write into each other's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.config.schema import SweeperConfig
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_form import RunForm, run_form
from sweeper.tracking.mlflow_store import MlflowStore, StudyTags
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome


@dataclass(frozen=True)
class StudySummary:
    """What the parent run is told when a study ends.

    Attributes:
        pareto_trials: numbers of the trials with a point on the front.
        metrics: figures of the study and its recommendation, finite.
        tags: further tags of the parent run.
        artifacts: files attached to the parent run, those that exist.
        interrupted: True if the study was stopped before its budget was used.
    """

    pareto_trials: frozenset[int] = frozenset()
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[Path, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True)
class SyncReport:
    """What a sync did: trials newly logged, repaired, and already there; error if it broke off."""

    logged: int = 0
    repaired: int = 0
    present: int = 0
    error: str | None = None


class MlflowTracker:
    """Mirrors outcomes into MLflow. Nothing it does can stop a study.

    Args:
        cfg: the study's configuration; `tracking` says where, `space` which columns there are.
        paths: the study's paths.
        identity: what makes the study this study (nested plain dict).
        study_name: its name.
        warn: told once when tracking fails, and once when it works again.
    """

    def __init__(
        self,
        cfg: SweeperConfig,
        paths: StudyPaths,
        identity: Mapping[str, Any],
        study_name: str,
        *,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._enabled = cfg.tracking.enabled
        self._paths = paths
        self._parameter_names = sorted({*cfg.space.parameters, *cfg.space.fixed})
        self._warn = warn
        self._failing = False
        self._is_open = False
        self._pending: list[TrialOutcome] = []
        self._is_half_logged = False
        self._store = MlflowStore(cfg.tracking, paths, StudyTags.of(identity, study_name))

    @property
    def uri(self) -> str:
        """The tracking URI in use."""
        return self._store.uri

    def start(self) -> None:
        """Open the parent run now, so that a running study can be seen. Fail-soft."""
        self._guard(self._store.reopen_parent)

    def record(self, outcome: TrialOutcome) -> None:
        """Log one trial, and before it those that could not be logged earlier. Fail-soft."""
        self._pending.append(outcome)
        self._guard(self._flush)

    def finish(self, summary: StudySummary) -> None:
        """Mark the front and close the parent run. Fail-soft."""
        self._guard(lambda: self._finish(summary))

    def sync(self, outcomes: Sequence[TrialOutcome]) -> SyncReport:
        """Bring MLflow up to date with the journal; doing it twice changes nothing. Fail-soft.

        Returns:
            Counts, and the error if it broke off in the middle.
        """
        counts = {"logged": 0, "repaired": 0, "present": 0}
        error = self._guard(lambda: self._sync(outcomes, counts))
        if error is None:
            self._pending.clear()
            self._is_half_logged = False
        return SyncReport(**counts, error=error)

    def _flush(self) -> None:
        if not self._is_open:
            self._store.reopen_parent()
            self._is_open = True
        # An earlier try may have opened the child run and failed to fill it.
        children = self._store.children() if self._is_half_logged else {}
        while self._pending:
            outcome = self._pending[0]
            self._is_half_logged = True
            self._log(outcome, children.get((outcome.number, outcome.attempt)))
            self._pending.pop(0)
            self._is_half_logged = False

    def _sync(self, outcomes: Sequence[TrialOutcome], counts: dict[str, int]) -> None:
        if not self._enabled:
            return
        children = self._store.children()
        for outcome in outcomes:
            child = children.get((outcome.number, outcome.attempt))
            if child is not None and child.complete:
                counts["present"] += 1
                continue
            self._log(outcome, child)
            counts["logged" if child is None else "repaired"] += 1
        if not StudyLock(self._paths.lock).is_held():
            self._store.end_orphaned_parent()

    def _log(self, outcome: TrialOutcome, child: Any) -> None:
        form = run_form(outcome, self._parameter_names)
        run_id = child.run_id if child is not None else self._store.create_child(form)
        self._store.fill(run_id, form, self._artifacts(outcome, form))

    def _artifacts(self, outcome: TrialOutcome, form: RunForm) -> list[Path | tuple[str, Any]]:
        folder = self._paths.trial_dir(outcome.number, outcome.attempt)
        files = [folder / "argv.json", folder / "server.log"]
        return [("outcome.json", outcome.to_dict()), *(f for f in files if f.is_file())]

    def _finish(self, summary: StudySummary) -> None:
        self._flush()
        for (number, _), child in self._store.children().items():
            self._store.tag(child.run_id, "pareto", str(number in summary.pareto_trials).lower())
        self._store.close_parent(
            metrics=summary.metrics,
            tags=summary.tags,
            artifacts=[path for path in summary.artifacts if path.exists()],
            status="KILLED" if summary.interrupted else "FINISHED",
        )
        self._is_open = False

    def _guard(self, action: Callable[[], object]) -> str | None:
        """Run `action`; a failure becomes one warning and its text, never an exception."""
        if not self._enabled:
            return None
        try:
            action()
        except Exception as error:
            # MLflow raises whatever its database, its HTTP client or its server raises; the journal
            # already has the data, so that any of them may only cost the mirror.
            text = _one_line(error)
            self._report_failure(text)
            return text
        if self._failing:
            self._failing = False
            self._warn("MLflow tracking works again")
        return None

    def _report_failure(self, text: str) -> None:
        if not self._failing:
            self._warn(
                f"MLflow tracking at {self.uri} failed ({text}); the study goes on, its journal "
                f"has everything. Later: python -m sweeper sync study={self._paths.name}"
            )
        self._failing = True


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
