"""The report: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sweeper.config.schema import SloConfig
from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import selectable
from sweeper.report.importance.insight import Insight
from sweeper.report.importance.section import insight_section
from sweeper.report.modes import modes
from sweeper.report.page import conditions, results
from sweeper.report.page.document import Section, document
from sweeper.report.page.opening import opening, recommended, said
from sweeper.report.page.slots import Slots
from sweeper.report.plots import importance, predicted
from sweeper.report.plots import trade as trade_plot
from sweeper.report.plots.hover import point_texts
from sweeper.report.prior_text import prior_section
from sweeper.report.text import only_default_worked
from sweeper.report.trade.section import CAPTION, TITLE, trade_section
from sweeper.report.trade.table import trade
from sweeper.tracking.paths import atomic_write_text
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import pandas as pd

_IMPORTANCE = (
    "How much of a figure each parameter explains; bars are 9 in 10 resampled forests. Grey and "
    "hatched is no better than chance."
)
_PREDICTED = (
    "A mark is an operating point. On the dashed line the prediction was right; above it, too high."
)


def write_report(  # noqa: PLR0917 - the order of report_html, after the path
    path: Path,
    frame: pd.DataFrame,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
    study: str,
    ended: str = "",
    slo: SloConfig | None = None,
    insight: Insight | None = None,
    commands: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the report in place of the earlier one.

    Args:
        path: the HTML file; its folder must exist.
        frame: of `points_frame`.
        outcomes: all trials, failed ones too.
        recommendation: None if nothing was feasible.
        study: the study's name.
        ended: why the search ended, one line.
        slo: the promise; trials that keep it at no load stand among what did not work.
        insight: why the winner wins, and which parameters mattered; None leaves both out.
        commands: how to make the numbers again, (what it does, what to type).

    Raises:
        StudyError: it cannot be written.
    """
    text = report_html(frame, outcomes, recommendation, study, ended, slo, insight, commands)
    atomic_write_text(path, text)


def report_html(  # noqa: PLR0917 - the order of write_report
    frame: pd.DataFrame,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
    study: str,
    ended: str = "",
    slo: SloConfig | None = None,
    insight: Insight | None = None,
    commands: Sequence[tuple[str, str]] = (),
) -> str:
    """The report as text. Everything that is not made here is escaped."""
    slots = Slots()
    is_alone = recommendation is None or recommendation.is_baseline
    top = opening(
        outcomes, recommendation, study, ended, only_default_worked(outcomes) if is_alone else ""
    )
    failed = Section("failures", "What did not work, by cause", results.failures(outcomes, slo))
    sections = [
        _recommended(recommendation),
        *([failed] if recommendation is None else []),
        *_measured(frame, outcomes, recommendation, slo, slots),
        *_learnt(insight, slots),
        Section("tried", "What was tried", results.coordinates(outcomes, recommendation, slots)),
        Section(
            "launches",
            "Launches",
            results.launches(outcomes, slots) + results.trials(outcomes),
        ),
        *([] if recommendation is None else [failed]),
        Section("priors", "Predicted against measured", _priors(outcomes, slots)),
        Section("conditions", "Conditions", conditions.conditions(outcomes)),
        Section("reproduce", "How to reproduce this", conditions.reproduce(commands)),
        Section("words", "Words", conditions.glossary()),
    ]
    return document(study, top, sections, slots)


def _recommended(recommendation: Recommendation | None) -> Section:
    keeps = recommendation is None or recommendation.keeps_slo
    title = "Recommended deployment" if keeps else "Nearest to the SLO"
    return Section("recommended", title, recommended(recommendation))


def _measured(
    frame: pd.DataFrame,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
    slo: SloConfig | None,
    slots: Slots,
) -> list[Section]:
    """Front, ladders and what quantization did."""
    texts = point_texts(row_dict(row) for row in selectable(frame).to_dict("records"))
    found = trade(outcomes)
    views = [("", trade_plot.draw(found) if found.says_something else None)]
    trial = None if recommendation is None else recommendation.trial
    return [
        Section(
            "front",
            "Throughput and latency",
            results.front(frame, recommendation, slo, texts, slots),
        ),
        Section(
            "ladders",
            "Load ladders",
            results.ladders(frame, recommendation, slo, texts, slots) + modes(outcomes, trial),
        ),
        Section("trade", TITLE, trade_section(found, slots.place("trade", views, CAPTION))),
    ]


def _learnt(insight: Insight | None, slots: Slots) -> list[Section]:
    """Why the winner wins, and which parameters mattered."""
    if insight is None:
        return []
    drawing = slots.place("importance", [("", importance.draw(insight))], _IMPORTANCE)
    return [
        Section("why", "Why it wins", f"<p>{said(insight.why)}</p>" if insight.why else ""),
        Section("parameters", "Which parameters mattered", insight_section(insight, drawing)),
    ]


def _priors(outcomes: Sequence[TrialOutcome], slots: Slots) -> str:
    drawing = slots.place("predicted", [("", predicted.draw(outcomes))], _PREDICTED)
    return drawing + prior_section(outcomes)
