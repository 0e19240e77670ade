"""The mirror itself: from a list of outcomes to runs in MLflow. Raises what MLflow does.

Whatever is there already is left alone, what is half there is completed, what is missing is added:
doing it twice changes nothing, and a failure in between only means that it is done again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.tracking.ending import KILLED, Ending, ending_of, status_of
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_fill import Artifact
from sweeper.tracking.mlflow_form import RunForm, end_ms, run_form, safe_names, timestamp_ms
from sweeper.tracking.mlflow_metrics import BestSoFar
from sweeper.tracking.mlflow_store import MARKS, Child, MlflowStore, recorded_run
from sweeper.tracking.mlflow_tags import ROLE
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome


@dataclass(frozen=True)
class StudySummary:
    """What the parent run is told when a study ends.

    Attributes:
        pareto_trials: numbers of the trials with a point on the front.
        recommended_trial: number of the trial that is recommended, None if none is.
        confirmations: number of a trial → what the launches that were to confirm it say.
        metrics: figures of the study and its recommendation.
        tags: further tags of the parent run.
        note: its description, Markdown; None leaves the one that is there.
        artifacts: files and folders attached to the parent run, those that exist.
        interrupted: True if the study was stopped before its budget was used.
        status: how the parent run ends; None says it by `interrupted`.
    """

    pareto_trials: frozenset[int] = frozenset()
    recommended_trial: int | None = None
    confirmations: Mapping[int, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None
    artifacts: tuple[Path, ...] = ()
    interrupted: bool = False
    status: str | None = None

    def marks(self, number: int) -> dict[str, str]:
        """What a child run is tagged with at the end."""
        return {
            "pareto": str(number in self.pareto_trials).lower(),
            "recommended": str(number == self.recommended_trial).lower(),
            "confirmation": self.confirmations.get(number, MARKS["confirmation"]),
        }


@dataclass
class Counts:
    """What was done since the runs were last listed."""

    logged: int = 0
    repaired: int = 0
    present: int = 0


class Mirror:
    """Mirrors one study.

    Args:
        store: its runs.
        paths: its paths.
    """

    def __init__(self, store: MlflowStore, paths: StudyPaths) -> None:
        self._store = store
        self._paths = paths
        self._children: dict[tuple[int, int], Child] | None = None
        self._parent: str | None = None
        self._next, self._best = 0, BestSoFar()
        self.counts = Counts()
        self.left_out: list[str] = []

    def forget(self) -> None:
        """List the runs anew next time: the last try may have left one half-filled."""
        self._children = None

    def catch_up(self, outcomes: Sequence[TrialOutcome], *, live: bool) -> None:
        """Bring the runs up to date with a journal that only grows from call to call.

        Args:
            outcomes: the journal so far.
            live: True while a tuner works on the study; its parent is shown as running.
        """
        self._open(outcomes, live=live)
        first = self._next
        while self._next < len(outcomes):
            self._log(outcomes[self._next])
            self._next += 1
        self._tell_best(outcomes[first:])

    def _tell_best(self, news: Sequence[TrialOutcome]) -> None:
        """The best so far, for whoever watches the parent run; each at the end of its launch."""
        known = [(item, outcome) for outcome in news if (item := self._best.take(outcome))]
        if known:
            stamps = [end_ms(outcome) for _, outcome in known]
            self._store.log_parent([item for item, _ in known], stamps)

    def _open(self, outcomes: Sequence[TrialOutcome], *, live: bool) -> None:
        """Find or make the parent run, and list its children if they are not known."""
        start_ms = timestamp_ms(outcomes[0].started_at) if outcomes else None
        parent = self._store.find_parent(start_ms)
        if live and parent != self._parent:
            self._store.show_running()
        if parent != self._parent or self._children is None:
            self._children = self._store.children()
            self._next, self._best = 0, BestSoFar()
            self.counts = Counts()
        self._parent = parent

    def _log(self, outcome: TrialOutcome) -> None:
        key = (outcome.number, outcome.attempt)
        known = self._children or {}
        child = known.get(key)
        if child is not None and child.complete:
            self.counts.present += 1
            return
        form = self._form(outcome)
        if form is None:
            return
        run_id = child.run_id if child is not None else self._store.create_child(form)
        left_out = self._store.fill(run_id, form, self._artifacts(outcome))
        if child is None:
            self.counts.logged += 1
        else:
            self.counts.repaired += 1
        if left_out:
            self.left_out.append(f"of run {form.name}: {', '.join(left_out)}")

    def close(self, summary: StudySummary, outcomes: Sequence[TrialOutcome]) -> None:
        """Mark the front, and fill and end the parent run. Everything must have been logged."""
        self._mark(summary)
        stamp_ms = max(map(end_ms, outcomes), default=0)
        finite = {name: float(v) for name, v in summary.metrics.items() if math.isfinite(v)}
        names = safe_names(finite)
        items = [(names[name], value, len(outcomes)) for name, value in finite.items()]
        self._store.log_parent(items, stamp_ms)
        parent = self._store.find_parent()
        for key, text in summary.tags.items():
            self._store.tag(parent, key, text)
        if summary.note is not None:
            self._store.describe(summary.note)
        if outcomes:
            self._store.save_view(varied(outcomes), timestamp_ms(outcomes[0].started_at))
        for path in summary.artifacts:
            if path.exists():
                self._attach_to_parent(path)
        status = summary.status or status_of(self._ended(summary))
        self._store.end_run(parent, status, stamp_ms or None)

    def _mark(self, summary: StudySummary) -> None:
        """Mark the front, the recommendation, and what was confirmed.

        Of a trial that was tried twice the last attempt has the figures that are judged.
        """
        children = self._store.children()
        last = dict(sorted(children))
        for (number, attempt), child in children.items():
            wanted = summary.marks(number) if attempt == last[number] else MARKS
            for name, text in wanted.items():
                if child.tags.get(name) != text:
                    self._store.tag(child.run_id, name, text)

    @staticmethod
    def _ended(summary: StudySummary) -> str:
        return summary.tags.get("ended", "stopped") if summary.interrupted else ""

    def end_orphans(self) -> None:
        """End what tuners that were killed left running: other studies of the same folder.

        A run is only touched if the folder of a study here names it and nobody holds that study.
        """
        for run in self._store.search(f"tags.`{ROLE}` = 'study' and attributes.status = 'RUNNING'"):
            ending = self._orphaned(str(run.info.run_id))
            if ending is None:
                continue
            for child in self._store.running_children(run.info.run_id):
                self._store.end_run(child, KILLED)
            self._store.end_run(run.info.run_id, ending.status)

    def _orphaned(self, run_id: str) -> Ending | None:
        """How the study of a running parent run ended; None if it runs, or is none of ours."""
        for record in self._paths.studies_dir.glob("*/mlflow.json"):
            paths = StudyPaths(self._paths.studies_dir, record.parent.name)
            if paths.root == self._paths.root or recorded_run(paths, self._store.uri) != run_id:
                continue
            return None if StudyLock(paths.lock).is_held() else ending_of(paths)
        return None

    def _form(self, outcome: TrialOutcome) -> RunForm | None:
        """The trial's form; one that has none must not keep those after it from MLflow."""
        try:
            return run_form(outcome, self._store.columns)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            name = f"trial {outcome.number}, attempt {outcome.attempt}"
            self.left_out.append(f"{name} ({type(error).__name__}: {error})")
            return None

    def _artifacts(self, outcome: TrialOutcome) -> list[Artifact]:
        folder = self._paths.trial_dir(outcome.number, outcome.attempt)
        files = [folder / "argv.json", folder / "server.log"]
        return [("outcome.json", outcome.to_dict()), *(f for f in files if f.is_file())]

    def _attach_to_parent(self, path: Path) -> None:
        # A store that takes no files was told of with the first trial; the run has to end too.
        with suppress(Exception):
            self._store.attach_to_parent(path)


def varied(outcomes: Sequence[TrialOutcome]) -> list[str]:
    """Parameters of which more than one value was launched, all of them numbers or all words.

    What is left to the engine is a word (``default``): a parameter with numbers that is so in one
    trial is left out.
    """
    launched = [outcome.deployment for outcome in outcomes if outcome.launched]
    values = {
        name: [deployment.get(name, "default") for deployment in launched]
        for name in {name for deployment in launched for name in deployment}
    }
    return sorted(
        name
        for name, found in values.items()
        if len({repr(value) for value in found}) > 1
        and len({_is_number(value) for value in found}) == 1
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
