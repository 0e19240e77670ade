"""The end of a study: front, recommendation, report, deployment files, MLflow summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sweeper.errors import NoFeasibleTrialError
from sweeper.export.registry import is_deployable
from sweeper.export.write import write_recommended
from sweeper.pareto.cost import Price
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import recommend
from sweeper.report.conditions_csv import pareto_csv
from sweeper.report.confirm_text import with_command
from sweeper.report.html import write_report
from sweeper.report.importance.insight import understand
from sweeper.report.mlflow_note import told_to_mlflow
from sweeper.report.prior_text import render_prior
from sweeper.report.reproduce import commands
from sweeper.report.summary_md import report_markdown
from sweeper.report.text import (
    only_default_worked,
    render_front,
    render_misses,
)
from sweeper.report.trade.table import trade
from sweeper.report.trade.text import render_trade
from sweeper.search.progress import take_stock
from sweeper.search.setup import StudySetup
from sweeper.search.stopping import EXHAUSTED
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths, atomic_write_text
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Listener, Note
from sweeper.verbs.table_told import against_table

if TYPE_CHECKING:
    import pandas as pd


def finish(
    setup: StudySetup,
    paths: StudyPaths,
    outcomes: Sequence[TrialOutcome],
    *,
    tracker: MlflowTracker,
    ended: str,
    listener: Listener,
) -> int:
    """Write everything a study leaves behind.

    Args:
        ended: why the search ended, one line.

    Returns:
        0 with a recommendation, 1 if nothing keeps the SLO (the nearest miss is only shown).

    Raises:
        NoFeasibleTrialError: no trial has a valid point; the report is written all the same.
    """
    frame = points_frame(outcomes)
    recommendation = _recommend(frame, setup)
    if recommendation is not None:
        recommendation = with_command(recommendation, frame, outcomes, setup.cfg, paths.name)
    deployable = is_deployable(setup.cfg.engine.name)
    if recommendation is not None and recommendation.keeps_slo and deployable:
        write_recommended(setup, paths, outcomes, recommendation)
    slo = setup.cfg.select.slo
    stock = take_stock(setup.cfg, outcomes)
    if ended.startswith(EXHAUSTED):
        stock = replace(stock, outlook="")  # no hour buys what is not there
    outlook = stock.outlook[:1].upper() + stock.outlook[1:]
    told = ". ".join(text for text in (ended, f"Used: {stock.spent}", outlook) if text)
    typed = commands(setup.cfg, paths.name, recommendation, deployable=deployable)
    _write_reports(setup, paths, outcomes, frame, recommendation, told=told, typed=typed)
    summary = told_to_mlflow(
        setup.cfg,
        paths,
        outcomes,
        frame,
        recommendation=recommendation,
        ended=ended,
        typed=typed,
    )
    tracker.finish(summary)
    listener(Note(f"study {paths.name}: {ended}"))
    if recommendation is None:
        raise NoFeasibleTrialError(
            f"study {paths.name} has no feasible trial\n{render_misses(outcomes, slo)}",
            f"see the causes above; the logs are {paths.trials_dir}/NUMBER/server.log",
        )
    print(render_front(frame, recommendation, "table"))
    if bought := render_trade(trade(outcomes)):
        print(f"\n{bought}")
    if setup.table is not None:
        cfg = setup.cfg
        print(f"\n{against_table(outcomes, setup.table, cfg.objective, cfg.select.slo)}")
    if told := render_prior(outcomes, setup.cfg):
        print(f"\n{told}")
    _say_what_failed(outcomes, setup, recommendation)
    print(f"\nused        {stock.spent}")
    if stock.outlook:
        print(f"outlook     {stock.outlook}")
    print(f"report      {paths.report_html}")
    if recommendation.keeps_slo:
        none = f"(no export target for engine={setup.cfg.engine.name})"
        print(f"deployment  {paths.recommended_dir if deployable else none}")
    return 0 if recommendation.keeps_slo else 1


def _write_reports(
    setup: StudySetup,
    paths: StudyPaths,
    outcomes: Sequence[TrialOutcome],
    frame: pd.DataFrame,
    recommendation: Recommendation | None,
    *,
    told: str,
    typed: Sequence[tuple[str, str]],
) -> None:
    """The report as a page and as text, and the front as a table."""
    name, slo = paths.name, setup.cfg.select.slo
    insight = understand(setup.cfg, setup.space, outcomes, recommendation)
    write_report(
        paths.report_html, frame, outcomes, recommendation, name, told, slo, insight, typed
    )
    text = report_markdown(frame, outcomes, recommendation, name, told, insight, typed)
    atomic_write_text(paths.report_md, text)
    atomic_write_text(paths.pareto_csv, pareto_csv(frame, outcomes, recommendation, name))


def _say_what_failed(
    outcomes: Sequence[TrialOutcome], setup: StudySetup, recommendation: Recommendation
) -> None:
    """Where nothing but the defaults worked, or nothing keeps the promise, its causes are due."""
    alone = only_default_worked(outcomes)
    failed = render_misses(outcomes, None if recommendation.keeps_slo else setup.cfg.select.slo)
    if alone:
        print(f"\n{alone}")
    if failed and (alone or not recommendation.keeps_slo):
        print(f"\n{failed}")


def _recommend(frame: pd.DataFrame, setup: StudySetup) -> Recommendation | None:
    try:
        return recommend(frame, setup.cfg.select, price=Price.of(setup.cfg.hardware))
    except NoFeasibleTrialError:
        return None
