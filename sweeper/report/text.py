"""The study in the terminal: front, recommendation, status, failures. Plain text, returned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sweeper.config.schema import SloConfig
from sweeper.pareto.cost import cost_text
from sweeper.pareto.points import latest_attempts, row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.repeats import BASELINE, CONFIRM
from sweeper.pareto.select import LATENCIES, THROUGHPUT, front_mask
from sweeper.redaction import shown
from sweeper.report.bounds_text import render_bounds
from sweeper.report.confirm_text import COLUMNS as CONFIRM_COLUMNS
from sweeper.report.confirm_text import TITLE as CONFIRM_TITLE
from sweeper.report.confirm_text import confirm_rows
from sweeper.report.front_table import front_table
from sweeper.report.live import eta_text
from sweeper.report.misses import COLUMNS, miss_rows, misses
from sweeper.report.shortfall_text import shortfall_table
from sweeper.report.terminal import plain, table, words_table
from sweeper.report.words import (
    deployment_text,
    metric_label,
    number,
)
from sweeper.search.bounds.learn import Lessons, refused_counts
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import StudyProgress
from sweeper.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ("output_tokens_per_s", THROUGHPUT, "ttft_p95_ms", "tpot_p95_ms", *LATENCIES, "quality")


def render_front(
    frame: pd.DataFrame, recommendation: Recommendation | None, form: str = "table"
) -> str:
    """The front and the recommendation.

    Args:
        frame: of `points_frame`.
        recommendation: None if nothing was feasible.
        form: ``table``, ``json`` or ``csv``; CSV has the front only.

    Raises:
        ValueError: `form` is not one of the three.
    """
    if form not in ("table", "json", "csv"):
        raise ValueError(f"form {form!r} is not table, json or csv")
    front = front_frame(frame)
    if form == "csv":
        return front_csv(front)
    if form == "json":
        rows = [row_dict(row) for row in front.to_dict("records")]
        chosen = recommendation.to_dict() if recommendation else None
        data = {"front": rows, "recommendation": chosen}
        return json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False)
    if recommendation is None:
        return "no feasible operating point"
    shown_rows = front_frame(frame, recommendation).to_dict("records")
    rows = [row_dict(row) for row in shown_rows]
    return f"{front_table(rows, recommendation)}\n{_verdict(recommendation)}"


def front_frame(frame: pd.DataFrame, recommendation: Recommendation | None = None) -> pd.DataFrame:
    """Rows on the front, by rising throughput; ``tie`` marks those that are on it within noise.

    The recommended point is among them even if it is not on the front: what was launched again may
    fall behind what was measured once, and is still what one can rely on.
    """
    shown_mask = on_front = front_mask(frame)
    if recommendation is not None:
        own = (frame["trial"] == recommendation.trial) & (frame["level"] == recommendation.level)
        shown_mask = on_front | own.to_numpy(dtype=bool)
    tie = on_front & ~front_mask(frame, with_ties=False)
    front = frame[shown_mask].assign(tie=tie[shown_mask])
    return front.sort_values(THROUGHPUT, kind="stable") if len(front) else front


def front_csv(front: pd.DataFrame) -> str:
    """CSV of front rows; the deployment is one JSON column, and each parameter a column too."""
    import pandas as pd

    copy = front.copy()
    copy["deployment"] = [json.dumps(d, sort_keys=True) for d in front["deployment"]]
    # Launches one by one, and what they replace, are in the journal; a cell has no room for them.
    copy = copy.drop(columns=["repeats", "searched"], errors="ignore")
    for name in copy.columns:
        if not pd.api.types.is_numeric_dtype(copy[name]):
            cells = [_cell(value) for value in copy[name]]
            copy[name] = pd.Series(cells, index=copy.index, dtype=object)
    return str(copy.to_csv(index=False, lineterminator="\n"))


def _cell(value: object) -> object:
    """A spreadsheet would run words that begin like a formula: an apostrophe makes them text."""
    is_formula = isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"}
    return f"'{value}" if is_formula else value


def render_status(
    outcomes: Sequence[TrialOutcome],
    name: str = "",
    progress: StudyProgress | None = None,
    lessons: Lessons | None = None,
) -> str:
    """All trials with verdict and cause, what failures taught, and what is left of the budget."""
    made = table(f"study {name}".strip(), ["trial", "kind", "verdict"], ["tokens/s", "E2E P95 ms"])
    made.add_column("deployment or cause", overflow="fold")
    for outcome in latest_attempts(outcomes):
        made.add_row(*_status_row(outcome))
    counts = Counter(str(outcome.verdict) for outcome in latest_attempts(outcomes))
    tally = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    parts = [plain(made), f"used: {_used(outcomes, progress)}; trials: {tally or 'none yet'}"]
    if progress is not None:
        left = eta_text(progress)
        parts += [text for text in (f"left: {left}" if left else "", progress.outlook) if text]
    if lessons is not None and lessons.everything:
        parts.insert(1, render_bounds(lessons, refused_counts(outcomes), name) + "\n")
    return "\n".join(parts)


def _used(outcomes: Sequence[TrialOutcome], progress: StudyProgress | None) -> str:
    if progress is not None and progress.spent:
        return progress.spent
    return f"{sum(outcome.launched for outcome in outcomes)} launches"


def render_misses(outcomes: Sequence[TrialOutcome], slo: SloConfig | None = None) -> str:
    """What did not work, one row a kind of cause, the nearest first; empty if everything did.

    Args:
        outcomes: every attempt.
        slo: a promise; trials that keep it at no load are listed too.
    """
    found = misses(outcomes, slo)
    if not found:
        return ""
    return words_table("what did not work, by cause, the nearest first", COLUMNS, miss_rows(found))


def only_default_worked(outcomes: Sequence[TrialOutcome]) -> str:
    """A sentence for a study in which nothing but the baseline worked, empty for any other."""
    alone = {BASELINE, CONFIRM}
    others = [outcome for outcome in latest_attempts(outcomes) if outcome.kind not in alone]
    if any(outcome.verdict is Verdict.OK for outcome in others):
        return ""
    if not others:
        return "No deployment but the default was tried."
    failed = f"all {len(others)} others failed" if len(others) > 1 else "the only other one failed"
    return f"No deployment but the default worked: {failed}."


def _status_row(outcome: TrialOutcome) -> list[str]:
    from rich.markup import escape

    text = deployment_text(outcome.deployment)
    if outcome.verdict is not Verdict.OK:
        text = f"{text}: {outcome.cause}"
    elif outcome.partial is not None:
        text = f"{text}: {outcome.partial}"
    top = max(
        outcome.valid_points, key=lambda p: p.metrics.get("output_tokens_per_s", 0.0), default=None
    )
    metrics = top.metrics if top is not None else {}
    return [
        str(outcome.number),
        outcome.kind,
        str(outcome.verdict),
        number(metrics.get("output_tokens_per_s")),
        number(metrics.get("e2e_p95_ms")),
        escape(shown(text)),
    ]


def _verdict(recommendation: Recommendation) -> str:
    lines = [recommendation.headline, recommendation.reason]
    compared = [("the same load", recommendation.ratios)]
    if recommendation.ratios_best != recommendation.ratios:
        compared.append(("its best load", recommendation.ratios_best))
    for title, found in compared:
        if found and not recommendation.is_baseline:
            names = {name: metric_label(name, [recommendation.point]) for name in found}
            parts = ", ".join(f"{names[name]} x{ratio:.2f}" for name, ratio in found.items())
            lines.append(f"against the baseline at {title}: {parts}")
    if recommendation.price is not None:
        lines.append(f"cost: {cost_text(recommendation.point, recommendation.price)}")
    if recommendation.shortfalls:
        lines.append("\n" + shortfall_table(recommendation) + "\n")
    for row in recommendation.alternatives:
        lines.append(f"alternative ({row['why']}): trial {row['trial']} at {row['level']}")
    if recommendation.to_confirm:
        lines.append(f"to confirm it: {recommendation.to_confirm}")
    if again := confirm_rows(recommendation):
        lines.append("\n" + words_table(CONFIRM_TITLE, CONFIRM_COLUMNS, again))
    return "\n".join(line for line in lines if line)
