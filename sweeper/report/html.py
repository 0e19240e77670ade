"""The report: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SloConfig
from sweeper.config.trust import FLAG, WARNING
from sweeper.pareto.compare import interval_text
from sweeper.pareto.points import is_predicted, latest_attempts, row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import THROUGHPUT
from sweeper.redaction import shown
from sweeper.report.alike import merged, with_alike
from sweeper.report.confirm_text import COLUMNS as CONFIRM_COLUMNS
from sweeper.report.confirm_text import confirm_rows
from sweeper.report.figures import front_figure
from sweeper.report.importance.insight import Insight
from sweeper.report.importance.section import insight_section
from sweeper.report.misses import COLUMNS, miss_rows, misses
from sweeper.report.modes import modes
from sweeper.report.prior_text import prior_section
from sweeper.report.tables import table
from sweeper.report.text import front_frame, only_default_worked
from sweeper.report.trade.section import trade_section
from sweeper.report.trade.table import trade
from sweeper.report.words import (
    METRIC_LABELS,
    PREDICTED_LABELS,
    deployment_text,
    level_text,
    metric_label,
    metric_text,
    number,
    seconds,
)
from sweeper.tracking.paths import atomic_write_text
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.run import REAL
from sweeper.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

_STYLE = """
:root{color-scheme:light;background:#fff}
body{font:15px/1.5 system-ui,sans-serif;color:#1c2733;max-width:1180px;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.6rem;margin:0} h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
.sub{color:#5b6875} .verdict{background:#eef6f0;border-left:5px solid #2e933c;padding:.8rem 1rem}
.verdict.bad{background:#fbeef0;border-color:#d1495b} .verdict b{font-size:1.1rem}
.wide{overflow-x:auto} table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.35rem .6rem;border-bottom:1px solid #e3e8ed;text-align:left;vertical-align:top}
th{background:#f6f8fa} td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
tr.chosen td{background:#eef6f0} tr.baseline td{background:#fdf3f4}
code,pre{font:13px/1.45 ui-monospace,monospace}
pre{background:#f6f8fa;padding:.8rem;overflow-x:auto}
.tag{display:inline-block;border-radius:4px;padding:0 .4rem;background:#e3e8ed;font-size:.8rem}
.tag.OK{background:#d8efdc}
td small{display:block;color:#5b6875;font-size:.8em}
tr.crossed td{color:#8a4550} tr.crossed td.n,tr.crossed td:first-child{text-decoration:line-through}
.trade table{font-size:.82rem} .trade th{vertical-align:bottom}
.trade td:first-child{min-width:10rem} .trade td:nth-child(2){min-width:11rem}
.trade td.n{min-width:3.4rem} .trade td,.trade th{padding:.35rem .45rem}
@media print{@page{size:landscape;margin:1cm} body{margin:0;max-width:none;font-size:11px}
.wide{overflow:visible} table{font-size:9px} .trade table{font-size:8px}
.trade td,.trade th{padding:.2rem .3rem}
tr{break-inside:avoid} .js-plotly-plot{break-inside:avoid}}
"""

# Were something in it to become markup all the same, it could load nothing and tell nobody.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
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

    Raises:
        StudyError: it cannot be written.
    """
    text = report_html(frame, outcomes, recommendation, study, ended, slo, insight)
    atomic_write_text(path, text)


def report_html(  # noqa: PLR0917 - the order of write_report
    frame: pd.DataFrame,
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
    study: str,
    ended: str = "",
    slo: SloConfig | None = None,
    insight: Insight | None = None,
) -> str:
    """The report as text. Everything that is not made here is escaped."""
    figure = front_figure(frame, recommendation)
    drawing = figure.to_html(full_html=False, include_plotlyjs=True, div_id="front")
    parts = [
        f"<h1>{_text(study)}</h1><p class=sub>{_subtitle(outcomes, ended)}</p>",
        _trust(outcomes),
        _predicted(outcomes),
        _verdict(recommendation),
        _confirmed(recommendation),
        _recommended(recommendation),
        _only_default(outcomes) if recommendation is None or recommendation.is_baseline else "",
        _misses(outcomes, slo) if recommendation is None else "",
        f"<h2>Throughput and latency</h2>{drawing}",
        _front(frame, recommendation),
        "" if insight is None else insight_section(insight),
        trade_section(trade(outcomes)),
        modes(outcomes, None if recommendation is None else recommendation.trial),
        _misses(outcomes, slo) if recommendation is not None else "",
        _trials(outcomes),
        prior_section(outcomes),
        _conditions(outcomes),
    ]
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(study)} - sweeper</title><style>{_STYLE}</style></head><body>"
    )
    return head + "\n".join(part for part in parts if part) + "</body></html>\n"


def _text(text: str) -> str:
    """Text from outside as HTML: no markup, no secret, no control character."""
    return escape(shown(text))


def _subtitle(outcomes: Sequence[TrialOutcome], ended: str) -> str:
    spent = sum(outcome.timings_s.get("total", 0.0) for outcome in outcomes)
    launches = sum(outcome.launched for outcome in outcomes)
    trials = len(latest_attempts(outcomes))
    virtual = any(REAL in outcome.timings_s for outcome in outcomes)
    clock = "on a virtual clock" if virtual else "of measuring"
    text = f"{trials} trials, {launches} launches, {seconds(spent)} {clock}"
    return _text(f"{text}. {ended}".strip())


def _trust(outcomes: Sequence[TrialOutcome]) -> str:
    """A line if the model's own code was run; what a reader must know before they start it too."""
    models = (outcome.manifest.get("model") for outcome in outcomes)
    if not any(isinstance(model, Mapping) and model.get(FLAG) for model in models):
        return ""
    return f"<p><b>{_text(WARNING)}</b></p>"


def _predicted(outcomes: Sequence[TrialOutcome]) -> str:
    """A line above everything if no figure was measured."""
    if not any(is_predicted(outcome) for outcome in outcomes):
        return ""
    text = "Every figure of this study is predicted by a model of an engine. None was measured."
    return f"<p><b>{text}</b></p>"


def _verdict(recommendation: Recommendation | None) -> str:
    if recommendation is None:
        return (
            "<div class='verdict bad'><b>No feasible operating point.</b><br>"
            "The causes stand below, the nearest miss first.</div>"
        )
    look = "verdict" if recommendation.keeps_slo else "verdict bad"
    word = " <span class=tag>predicted</span>" if recommendation.predicted else ""
    return (
        f"<div class='{look}'><b>{_text(recommendation.headline)}</b>{word}<br>"
        f"{_text(recommendation.reason)}{_command(recommendation)}</div>"
    )


def _command(recommendation: Recommendation) -> str:
    if not recommendation.to_confirm:
        return ""
    return f"<br>To confirm it: <code>{_text(recommendation.to_confirm)}</code>"


def _confirmed(recommendation: Recommendation | None) -> str:
    """What was launched again beside the defaults."""
    rows = confirm_rows(recommendation)
    if not rows:
        return ""
    columns = [name.capitalize() for name in CONFIRM_COLUMNS]
    return "<h2>Launched again beside the defaults, in turns</h2>" + table(columns, rows)


def _recommended(recommendation: Recommendation | None) -> str:
    if recommendation is None:
        return ""
    point, base = recommendation.point, recommendation.baseline or {}
    title = "Recommended deployment" if recommendation.keeps_slo else "Nearest to the SLO"
    metrics = [
        [
            metric_label(metric, [point]),
            metric_text(metric, point),
            interval_text(point, metric) or "-",
            metric_text(metric, base),
            number(recommendation.ratios.get(metric)),
        ]
        for metric in METRIC_LABELS
        if metric in point
    ]
    columns = [f"At {level_text(point)} (n={point['n']})", "recommended"]
    columns += ["95 % interval", "baseline", "ratio"]
    settings = [[name, str(value)] for name, value in sorted(recommendation.deployment.items())]
    settings = settings or [["everything", "engine defaults"]]
    alternatives = [
        [row["why"], str(row["trial"]), level_text(row), deployment_text(row["deployment"])]
        for row in recommendation.alternatives
    ]
    html = f"<h2>{title}</h2>" + table(["Parameter", "Value"], settings)
    html += table(columns, metrics, numeric=range(1, 5)) + _speed_of_light(point, base)
    if alternatives:
        html += "<h2>Other ends of the front</h2>"
        html += table(["Why", "Trial", "Load", "Deployment"], alternatives)
    return html


def _speed_of_light(point: Mapping[str, Any], baseline: Mapping[str, Any]) -> str:
    """What the hardware allows at the recommended point, beside the baseline's at the same load."""
    rows = [
        [label, number(point[name]), number(baseline.get(name))]
        for name, label in PREDICTED_LABELS.items()
        if name in point
    ]
    if not rows:
        return ""
    columns = ["Speed of light (predicted)", "recommended", "baseline"]
    return table(columns, rows, numeric=range(1, 3))


def _front(frame: pd.DataFrame, recommendation: Recommendation | None) -> str:
    if not len(frame):
        return ""
    rows = [row_dict(row) for row in front_frame(frame, recommendation).to_dict("records")]
    metrics = [name for name in METRIC_LABELS if any(name in row for row in rows)]
    chosen = (recommendation.trial, recommendation.level) if recommendation is not None else None
    looks, cells = [], []
    for row in merged(rows, metrics, chosen):
        is_chosen = (row["trial"], row["level"]) == chosen
        looks.append("chosen" if is_chosen else str(row["kind"]))
        values = [metric_text(name, row) for name in metrics]
        cells.append([str(row["trial"]), level_text(row), str(row["n"]), *values, with_alike(row)])
    columns = ["Trial", "Load", "n", *(metric_label(m, rows) for m in metrics), "Deployment"]
    numeric = [0, *range(2, len(columns) - 1)]
    return "<h2>Pareto front</h2>" + table(columns, cells, looks=looks, numeric=numeric)


def _only_default(outcomes: Sequence[TrialOutcome]) -> str:
    sentence = only_default_worked(outcomes)
    return f"<p><b>{_text(sentence)}</b></p>" if sentence else ""


def _misses(outcomes: Sequence[TrialOutcome], slo: SloConfig | None) -> str:
    """What did not work, by cause."""
    found = miss_rows(misses(outcomes, slo))
    if not found:
        return ""
    columns = [name.capitalize() for name in COLUMNS]
    return "<h2>What did not work, by cause</h2>" + table(columns, found, numeric=[2])


def _trials(outcomes: Sequence[TrialOutcome]) -> str:
    rows, looks = [], []
    for outcome in latest_attempts(outcomes):
        top = max(outcome.valid_points, key=lambda p: p.metrics.get(THROUGHPUT, 0.0), default=None)
        metrics: Mapping[str, float] = top.metrics if top is not None else {}
        rows.append(
            [
                str(outcome.number),
                outcome.kind,
                str(outcome.verdict),
                number(metrics.get(THROUGHPUT)),
                number(metrics.get("e2e_p95_ms")),
                outcome.quality.shown if outcome.quality else "-",
                deployment_text(outcome.deployment),
                _cause(outcome),
            ]
        )
        looks.append(outcome.kind)
    columns = ["Trial", "Kind", "Verdict", "Peak tokens/s per device", "E2E P95 ms there"]
    name = next((outcome.quality.name for outcome in outcomes if outcome.quality), "quality")
    columns += [name[:1].upper() + name[1:], "Deployment", "Cause and remedy"]
    return "<h2>All trials</h2>" + table(columns, rows, looks=looks, numeric=range(3, 6), tag=2)


def _cause(outcome: TrialOutcome) -> str:
    if outcome.partial is not None:
        return outcome.partial
    if outcome.verdict is Verdict.OK:
        reasons = [reason for point in outcome.points for reason in point.reasons]
        return "; ".join(dict.fromkeys(reasons))
    return f"{outcome.phase}: {outcome.cause}" + (
        f" Remedy: {outcome.remedy}" if outcome.remedy else ""
    )


def _conditions(outcomes: Sequence[TrialOutcome]) -> str:
    manifest = next((o.manifest for o in outcomes if o.manifest and o.points), None)
    if manifest is None:
        return ""
    text = json.dumps(manifest, indent=2, default=str, ensure_ascii=False, sort_keys=True)
    return (
        "<h2>Conditions</h2><p class=sub>Of the first measured trial; every trial's own are in "
        f"trials.jsonl.</p><pre>{_text(text)}</pre>"
    )
