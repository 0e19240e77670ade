"""A study opened from Python: frames, choice, conditions and figures, without measuring anything.

study = sweeper.load_study("example-smollm2-cpu")
study.points[["trial", "level", "output_tokens_per_s", "ttft_p95_ms"]]
study.recommend(slo={"ttft_p95_ms": 300}).headline
study.plots.frontier().show()
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sweeper.errors import ConfigError
from sweeper.notebook.choice import price_of, select_config
from sweeper.notebook.frames import launches_frame, source_of, trials_frame
from sweeper.notebook.opening import find
from sweeper.notebook.plots import Plots
from sweeper.notebook.requests import Launch, requests_frame
from sweeper.pareto.points import latest_attempts, points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import THROUGHPUT, front_mask, recommend
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd


def load_study(
    study: str | PathLike[str], *, studies_dir: str | PathLike[str] = "studies"
) -> Study:
    """Open a study, finished or running. Nothing is written, launched or asked of a server.

    Args:
        study: its name, or its folder (anything with a slash, or a `Path`).
        studies_dir: the folder that names are looked up in.

    Returns:
        The study as its journal is now. Of a study that runs, open it again to see more; the line
        that is being written is left out.

    Raises:
        ConfigError: there is no such study; names the nearest.
        JournalError: its journal cannot be read.
    """
    paths, config = find(study, studies_dir)
    return Study(paths, config, Journal(paths.trials_jsonl).read())


class Study:
    """What a study's folder holds. Frames are made when they are asked for, and kept.

    A frame is yours: columns that you add stay, and neither `recommend` nor `plots` looks at them.
    What was not measured is NaN (None, <NA>), never a number. Columns and units: docs/python.md.

    Attributes:
        config: the configuration it was started with, as plain data; empty where it is not known.
        outcomes: every line of the journal, as objects.
    """

    def __init__(
        self, paths: StudyPaths, config: Mapping[str, Any], outcomes: list[TrialOutcome]
    ) -> None:
        self._paths = paths
        self.config = dict(config)
        self.outcomes = outcomes

    def __repr__(self) -> str:
        launches = sum(outcome.launched for outcome in self.outcomes)
        running = ", running" if self.is_running else ""
        what = f"{len(self.trials)} trials, {launches} launches, {len(self.points)} points"
        return f"<study {self.name}: {what}, {self.source}{running}>"

    @property
    def name(self) -> str:
        """The study's name."""
        return self._paths.name

    @property
    def folder(self) -> str:
        """The study's folder."""
        return str(self._paths.root)

    @property
    def source(self) -> str:
        """``measured``, ``predicted`` (by a model of an engine) or ``replayed`` (from a table).

        A study without a trial says ``empty``.
        """
        return source_of(self.outcomes[0]) if self.outcomes else "empty"

    @property
    def is_running(self) -> bool:
        """True if a tuner of this machine works on the study now."""
        return StudyLock(self._paths.lock).is_held()

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a deployment that was tried.

        ``trial``, ``kind``, ``verdict``, ``phase``, ``cause``, ``remedy``, ``source``,
        ``deployment``, ``launches``, ``points``, ``valid_points``, ``on_front``, ``partial``,
        ``peak_output_tokens_per_s_per_gpu`` (tokens/s) at ``peak_level``, ``lowest_e2e_p95_ms``,
        ``quality`` with its errors, ``checkpoint_gib``, ``total_s``, and ``param.<name>``.
        """
        return trials_frame(self.outcomes, self._points)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """One row a launch: retries and confirmations too, each with its seconds by phase.

        ``trial`` and ``attempt`` name it, ``repeats`` the trial that it confirms; ``launched`` is
        False of what was refused without one; ``start_s``, ``warmup_s``, ``load_s``, ``quality_s``,
        ``stop_s``, ``total_s``; ``started_at`` (UTC); ``verdict``, ``cause``, ``remedy``,
        ``evidence``; ``folder`` has its log.
        """
        return launches_frame(self.outcomes, self._paths.trial_dir)

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row an operating point: a trial at a load level.

        Its metrics have their units in their names, ``<metric>.low`` and ``.high`` are its 95 %
        interval; see `sweeper.pareto.points.points_frame`.
        """
        return points_frame(self.outcomes)

    @cached_property
    def front(self) -> pd.DataFrame:
        """Rows of `points` that none beats in throughput, latency and quality, slowest first."""
        front = self._points[front_mask(self._points)]
        return front.sort_values(THROUGHPUT, kind="stable") if len(front) else front

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a measured request of every launch: times, token counts, no text.

        Read from the launches' folders, so that a large study takes a while: `requests_of` reads
        one trial. A launch that left no file has no rows.

        Raises:
            StudyError: a file is there and cannot be read.
        """
        return requests_frame(self._launches(self.outcomes))

    def requests_of(self, trial: int) -> pd.DataFrame:
        """`requests` of one trial, all of its attempts.

        Raises:
            ConfigError: there is no such trial.
            StudyError: a file is there and cannot be read.
        """
        self._latest(trial)
        own = [outcome for outcome in self.outcomes if outcome.number == trial]
        return requests_frame(self._launches(own))

    def recommend(
        self,
        slo: Mapping[str, float | None] | None = None,
        prefer: str | None = None,
        *,
        trial: int | None = None,
        price_per_hour: float | None = None,
    ) -> Recommendation:
        """The operating point to run: the same choice as ``python -m sweeper pareto``.

        Args:
            slo: limits by the names of ``select.slo``: ``ttft_p95_ms``, ``min_quality`` and so on.
                None takes the study's own; an empty mapping makes no promise.
            prefer: what counts among the points that keep them, one of
                `sweeper.config.select_checks.PREFERENCES`; None takes the study's own.
            trial: choose among this trial's points only.
            price_per_hour: of one device, for what a million tokens cost; None takes the study's.

        Returns:
            The choice with its reasons. `keeps_slo` is False where nothing keeps the promise: its
            `point` is then the nearest miss, and `missed` says how far.

        Raises:
            ConfigError: a limit, a preference or a trial that is not known.
            NoFeasibleTrialError: no trial has a valid point.
        """
        select = select_config(self.config, slo, prefer)
        if trial is not None:
            found = self._latest(trial)
            trial = found.number if found.repeats is None else found.repeats
        price = price_of(self.config, price_per_hour)
        return recommend(self._points, select, only_trial=trial, price=price)

    def manifest(self, trial: int) -> dict[str, Any]:
        """The conditions a trial was measured under: model, engine, hardware, workload, load.

        Of its last attempt; a copy.

        Raises:
            ConfigError: there is no such trial.
        """
        return copy.deepcopy(self._latest(trial).manifest)

    @property
    def plots(self) -> Plots:
        """The figures of the report, as `plotly.graph_objects.Figure`."""
        return Plots(self, self._points)

    @cached_property
    def _points(self) -> pd.DataFrame:
        """Our own copy: `points` is the user's."""
        return points_frame(self.outcomes)

    def _latest(self, trial: int) -> TrialOutcome:
        known = {outcome.number: outcome for outcome in latest_attempts(self.outcomes)}
        if trial in known:
            return known[trial]
        numbers = list(known)
        raise ConfigError(
            f"study {self.name} has no trial {trial!r}",
            f"trials are {numbers[0]} to {numbers[-1]}" if numbers else "it has no trial yet",
        )

    def _launches(self, outcomes: list[TrialOutcome]) -> list[Launch]:
        return [Launch.of(o, self._paths.trial_dir(o.number, o.attempt)) for o in outcomes]
