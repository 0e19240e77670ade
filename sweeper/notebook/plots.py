"""The report's figures for one study, each a method of `Study.plots`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sweeper.config.schema import SloConfig
from sweeper.config.stored import StoredStudy, restore
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError, NoFeasibleTrialError, StudyError
from sweeper.notebook.choice import select_config
from sweeper.notebook.frames import MEASURED, PREDICTED
from sweeper.pareto.recommendation import Recommendation
from sweeper.report.importance.insight import understand
from sweeper.report.plots import frontier, importance, ladder, parallel, predicted, timeline, trade
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import pandas as pd


class Drawn(Protocol):
    """What a figure is made of."""

    config: dict[str, Any]
    outcomes: list[TrialOutcome]

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    def recommend(self) -> Recommendation: ...


class Plots:
    """Figures of a study; each is a `plotly.graph_objects.Figure`, to be shown or changed.

    Figures of a predicted or a replayed study say so in their title. A method raises `StudyError`
    where the study has nothing to draw. The star is the study's own recommendation; give
    ``recommendation=study.recommend(slo=...)`` for another.
    """

    def __init__(self, study: Drawn, points: pd.DataFrame) -> None:
        self._study = study
        self._points = points

    def frontier(
        self, recommendation: Recommendation | None = None, *, view: str | None = None
    ) -> Any:
        """Tokens/s per device over latency or tokens/s per user: front, baseline, promise.

        Args:
            recommendation: the star; None takes the study's own.
            view: user | ttft | tpot | e2e | e2e_mean | e2e_p50; None takes the first that was
                measured.

        Raises:
            ConfigError: no such view.
        """
        _check("view", view, frontier.VIEWS)
        chosen = recommendation or self._chosen()
        made = frontier.figure(self._points, chosen, slo=self._slo(recommendation), view=view)
        return self._shown("frontier", made, "it has no valid operating point")

    def ladder(
        self, recommendation: Recommendation | None = None, *, latency: str | None = None
    ) -> Any:
        """Tokens/s per device and a latency over the load levels, a line a deployment.

        Args:
            recommendation: the star; None takes the study's own.
            latency: a metric in milliseconds; None takes the study's latency.

        Raises:
            ConfigError: the study has no such metric.
        """
        _check(
            "latency", latency, [name for name in map(str, self._points) if name.endswith("_ms")]
        )
        chosen = recommendation or self._chosen()
        made = ladder.figure(self._points, chosen, slo=self._slo(recommendation), latency=latency)
        return self._shown("ladder", made, "it has no valid operating point")

    def timeline(self) -> Any:
        """A bar a launch, by verdict, over the study's own clock (minutes)."""
        made = timeline.figure(self._study.outcomes)
        return self._shown("timeline", made, "it has no launch")

    def parallel(self, recommendation: Recommendation | None = None) -> Any:
        """Parallel coordinates: what each deployment set, and what came of it."""
        made = parallel.figure(self._study.outcomes, recommendation or self._chosen())
        return self._shown("parallel", made, "too few deployments were measured")

    def predicted(self) -> Any:
        """What was predicted before a launch, over what it measured."""
        made = predicted.figure(self._study.outcomes)
        return self._shown("predicted", made, "nothing was predicted of what it measured")

    def importance(self) -> Any:
        """How much each parameter mattered to each figure, with how sure that is.

        Raises:
            ConfigError: the study's configuration is of another version, or not there.
            StudyError: too few trials.
        """
        cfg = restore(StoredStudy(self._study.config, {}))
        found = understand(cfg, parse_space(cfg.space), self._study.outcomes, self._chosen())
        return self._shown("importance", importance.figure(found), found.verdict)

    def trade(self) -> Any:
        """Throughput over the change of quality, a mark a way to store weights and cache."""
        made = trade.figure(self._study.outcomes)
        return self._shown("trade", made, "weights and cache were stored in one way only")

    def _chosen(self) -> Recommendation | None:
        """The study's own recommendation, None if nothing was feasible."""
        try:
            return self._study.recommend()
        except NoFeasibleTrialError:
            return None

    def _slo(self, recommendation: Recommendation | None) -> SloConfig:
        """The promise that is drawn: the given recommendation's, else the study's own."""
        if recommendation is not None:
            return SloConfig(**recommendation.slo)
        return select_config(self._study.config, None, None).slo

    def _shown(self, name: str, figure: Any, otherwise: str) -> Any:
        """The figure, marked where nothing in it was measured here."""
        if figure is None:
            raise StudyError(
                f"study {self._study.name} has nothing to draw for plots.{name}: {otherwise}",
                f"see what it has in study.trials and study.points; others are {_others(name)}",
            )
        source = self._study.source
        if source != MEASURED:
            whence = "by a model of an engine" if source == PREDICTED else "from a table"
            figure.update_layout(
                title={"text": f"{source} {whence}, not measured here", "font": {"size": 14}}
            )
        return figure


def _check(what: str, given: str | None, known: Iterable[str]) -> None:
    if given is not None and given not in (names := list(known)):
        raise ConfigError(f"{what}={given!r} is not known", did_you_mean(given, names))


def _others(name: str) -> str:
    drawn: Sequence[Callable[..., Any]] = (
        Plots.frontier, Plots.ladder, Plots.timeline, Plots.parallel, Plots.trade,
    )  # fmt: skip
    return ", ".join(f"plots.{one.__name__}" for one in drawn if one.__name__ != name)
