"""What was measured: the front, the ladders, every trial, and what did not work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SloConfig
from sweeper.pareto.points import latest_attempts, row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import LATENCIES, THROUGHPUT
from sweeper.report.alike import merged, with_alike
from sweeper.report.misses import COLUMNS, miss_rows, misses
from sweeper.report.page.slots import Slots
from sweeper.report.plots import frontier, ladder, parallel, timeline
from sweeper.report.plots.hover import Texts
from sweeper.report.tables import LONG, folded, table
from sweeper.report.text import front_frame
from sweeper.report.words import (
    METRIC_LABELS,
    deployment_text,
    level_text,
    metric_label,
    metric_text,
    number,
)
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd


def front(
    frame: pd.DataFrame,
    recommendation: Recommendation | None,
    slo: SloConfig | None,
    texts: Texts,
    slots: Slots,
) -> str:
    """The figure of throughput against what a user gets, and the front as a table."""
    views = frontier.draw_views(frame, recommendation, slo, texts)
    caption = (
        "A mark is a deployment at one load; up is more throughput for the money. Point at one for "
        "its whole deployment, click to keep the words. Bars are 95 % intervals"
    )
    promised = slo is not None and any(value is not None for value in vars(slo).values())
    caption += "; hollow marks break the SLO." if promised else "."
    drawing = slots.place("front", views, caption, switch="Against")
    return drawing + _front_table(frame, recommendation)


def front_metrics(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Figures of a table of points: one latency end to end, and no column twice."""
    names = [name for name in METRIC_LABELS if any(name in row for row in rows)]
    spare = [name for name in names if name in LATENCIES][1:]
    if all(row.get("output_tokens_per_s") == row.get(THROUGHPUT) for row in rows):
        spare.append("output_tokens_per_s")
    return [name for name in names if name not in spare]


def _front_table(frame: pd.DataFrame, recommendation: Recommendation | None) -> str:
    if not len(frame):
        return ""
    rows = [row_dict(row) for row in front_frame(frame, recommendation).to_dict("records")]
    if not rows:
        return ""
    metrics = front_metrics(rows)
    chosen = (recommendation.trial, recommendation.level) if recommendation is not None else None
    looks, cells = [], []
    for row in merged(rows, metrics, chosen):
        is_chosen = (row["trial"], row["level"]) == chosen
        looks.append("chosen" if is_chosen else str(row["kind"]))
        values = [metric_text(name, row) for name in metrics]
        cells.append([str(row["trial"]), level_text(row), str(row["n"]), *values, with_alike(row)])
    columns = ["Trial", "Load", "n", *(metric_label(m, rows) for m in metrics), "Deployment"]
    last = len(columns) - 1
    numeric = [0, *range(2, last)]
    caption = "Pareto front, by rising throughput"
    made = table(columns, cells, looks=looks, numeric=numeric, wide=[last], caption=caption)
    return made if len(cells) <= LONG else folded(f"Pareto front: {len(cells)} points", made)


def ladders(
    frame: pd.DataFrame,
    recommendation: Recommendation | None,
    slo: SloConfig | None,
    texts: Texts,
    slots: Slots,
) -> str:
    """The figure of the load ladders; empty where there is one level alone."""
    views = [
        (
            METRIC_LABELS[name].removesuffix(" ms"),
            ladder.draw(frame, recommendation, slo=slo, latency=name, texts=texts),
        )
        for name in ladder.latencies(frame)
        if name not in LATENCIES[1:] or LATENCIES[0] not in frame.columns
    ]
    caption = (
        "What more load buys and what it costs. Where throughput stops rising and latency goes on, "
        "the server is full: beyond that add replicas."
    )
    return slots.place("ladder", views, caption, switch="Latency")


def coordinates(
    outcomes: Sequence[TrialOutcome], recommendation: Recommendation | None, slots: Slots
) -> str:
    """The figure of what each deployment set and what came of it."""
    caption = (
        "A line is a deployment: its settings on the left, its figures on the right, the better "
        "end on top. Names in the legend show and hide."
    )
    return slots.place("parallel", [("", parallel.draw(outcomes, recommendation))], caption)


def launches(outcomes: Sequence[TrialOutcome], slots: Slots) -> str:
    """When each launch ran and how it ended."""
    caption = (
        "Every launch on the study's own clock, a lane for each way to end; above, the best "
        "throughput at any load so far."
    )
    if timeline.is_virtual(outcomes):
        caption += " The clock is virtual: what the launches would have taken."
    return slots.place("timeline", [("", timeline.draw(outcomes))], caption)


def failures(outcomes: Sequence[TrialOutcome], slo: SloConfig | None) -> str:
    """What did not work, by cause, the nearest first."""
    found = miss_rows(misses(outcomes, slo))
    if not found:
        return ""
    columns = [name.capitalize() for name in COLUMNS]
    return table(columns, found, numeric=[2], wide=[0, 3, 4, 5])


def trials(outcomes: Sequence[TrialOutcome]) -> str:
    """Every trial with its verdict; folded where there are many."""
    latest = latest_attempts(outcomes)
    rows = [_trial(outcome) for outcome in latest]
    columns = ["Trial", "Kind", "Verdict", "Peak tokens/s per device", "E2E P95 ms there"]
    name = next((outcome.quality.name for outcome in outcomes if outcome.quality), "")
    if name:
        columns.append(name[:1].upper() + name[1:])
    else:
        rows = [[*row[:5], *row[6:]] for row in rows]
    columns += ["Deployment", "Cause and remedy"]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    words = [place for place, title in enumerate(columns) if title[:5] in {"Deplo", "Cause"}]
    made = table(
        columns,
        rows,
        looks=[outcome.kind for outcome in latest],
        numeric=[0, *range(3, words[0])] if words else [0],
        wide=words,
        tag=2,
    )
    return folded(f"All {len(rows)} trials", made, is_open=len(rows) <= LONG)


def _trial(outcome: TrialOutcome) -> list[str]:
    top = max(outcome.valid_points, key=lambda p: p.metrics.get(THROUGHPUT, 0.0), default=None)
    metrics: Mapping[str, float] = top.metrics if top is not None else {}
    return [
        str(outcome.number),
        outcome.kind,
        str(outcome.verdict),
        number(metrics.get(THROUGHPUT)),
        number(metrics.get("e2e_p95_ms")),
        outcome.quality.shown if outcome.quality else "-",
        deployment_text(outcome.deployment),
        _cause(outcome),
    ]


def _cause(outcome: TrialOutcome) -> str:
    if outcome.partial is not None:
        return outcome.partial
    if outcome.verdict is Verdict.OK:
        reasons = [reason for point in outcome.points for reason in point.reasons]
        return "; ".join(dict.fromkeys(reasons))
    return f"{outcome.phase}: {outcome.cause}" + (
        f" Remedy: {outcome.remedy}" if outcome.remedy else ""
    )
