"""What a reader sees first: the verdict, how sure it is, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sweeper.config.trust import FLAG, WARNING
from sweeper.pareto.compare import interval_text
from sweeper.pareto.confirmed import BETTER, INCONCLUSIVE
from sweeper.pareto.confirmed_words import gain_text
from sweeper.pareto.cost import COST, DEVICE_SECONDS, costs
from sweeper.pareto.points import is_predicted, latest_attempts
from sweeper.pareto.recommendation import Recommendation
from sweeper.redaction import shown
from sweeper.report.confirm_text import COLUMNS as CONFIRM_COLUMNS
from sweeper.report.confirm_text import confirm_rows
from sweeper.report.page.conditions import conditions_line, replayed_from
from sweeper.report.plots.frontier import PER_USER
from sweeper.report.plots.timeline import is_virtual
from sweeper.report.shortfall_text import COLUMNS as SHORTFALL_COLUMNS
from sweeper.report.shortfall_text import shortfall_rows
from sweeper.report.tables import folded, table
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
from sweeper.trial.outcome import TrialOutcome

PREDICTED = "Every figure of this study is predicted by a model of an engine. None was measured."
AGAIN = "Launched again beside the defaults, in turns"
_CARDS = ("output_tokens_per_s_per_gpu", PER_USER, "ttft_p95_ms", "e2e_p95_ms", "quality")


def said(text: str) -> str:
    """Text from outside as HTML: no markup, no secret, no control character."""
    return escape(shown(text))


def opening(
    outcomes: Sequence[TrialOutcome],
    recommendation: Recommendation | None,
    study: str,
    ended: str,
    only_default: str,
) -> str:
    """Name, conditions in a line, warnings, verdict and the figures behind it.

    Args:
        outcomes: all trials.
        recommendation: None if nothing was feasible.
        study: its name.
        ended: why the search ended, one line.
        only_default: a sentence for a study in which nothing but the defaults worked.
    """
    marks = "".join(f' <span class="mark open">{mark}</span>' for mark in _marks(outcomes))
    button = "<button type=button id=theme class=screen>Dark theme</button>"
    parts = [
        f"<div class=top><h1>{said(study)}{marks}</h1>{button}</div>",
        f"<p class=sub>{said(conditions_line(outcomes))}</p>",
        *(f"<p class=warn>{said(line)}</p>" for line in warnings(outcomes)),
        _verdict(recommendation),
        _cards(recommendation),
        f"<p class=sub>{said(_subtitle(outcomes, ended))}</p>",
        f"<p><b>{said(only_default)}</b></p>" if only_default else "",
    ]
    return "\n".join(part for part in parts if part)


def _marks(outcomes: Sequence[TrialOutcome]) -> list[str]:
    told = ["predicted"] if any(is_predicted(outcome) for outcome in outcomes) else []
    return [*told, "replayed"] if replayed_from(outcomes) else told


def warnings(outcomes: Sequence[TrialOutcome]) -> list[str]:
    """What must be known before anything below is believed or started."""
    told = []
    models = (outcome.manifest.get("model") for outcome in outcomes)
    if any(isinstance(model, Mapping) and model.get(FLAG) for model in models):
        told.append(WARNING)
    if any(is_predicted(outcome) for outcome in outcomes):
        told.append(PREDICTED)
    if source := replayed_from(outcomes):
        told.append(f"Nothing was launched: every answer is {source}.")
    return told


def _subtitle(outcomes: Sequence[TrialOutcome], ended: str) -> str:
    spent = sum(outcome.timings_s.get("total", 0.0) for outcome in outcomes)
    launches = sum(outcome.launched for outcome in outcomes)
    trials = len(latest_attempts(outcomes))
    clock = "on a virtual clock" if is_virtual(outcomes) else "of measuring"
    text = f"{trials} trials, {launches} launches, {seconds(spent)} {clock}"
    return f"{text}. {ended[:1].upper()}{ended[1:]}".strip()


def _verdict(recommendation: Recommendation | None) -> str:
    if recommendation is None:
        return (
            '<div class="verdict bad"><p class=headline>No feasible operating point.</p>'
            "<p>The causes stand below, the nearest miss first.</p></div>"
        )
    look, sure = how_sure(recommendation)
    return (
        f'<div class="verdict {look}"><p class=headline>{said(recommendation.headline)}</p>'
        f"<p class=sure>{said(sure)}</p><p>{said(recommendation.reason)}</p>"
        f"{_command(recommendation)}</div>"
    )


def how_sure(recommendation: Recommendation) -> tuple[str, str]:
    """(look, how sure the verdict is in one line)."""
    found, told = recommendation.confirmation, "Predicted. " if recommendation.predicted else ""
    if not recommendation.keeps_slo:
        return "bad", f"{told}No promise is kept: this is the nearest miss."
    if found is None:
        if recommendation.predicted:
            return "open", "Predicted, and not confirmed by any launch."
        word = "Nothing else was launched again" if recommendation.is_baseline else "Measured once"
        return "open", f"Not confirmed. {word}: the gain may be luck or noise."
    launches = f"{found.pairs} fresh launches of each, in turns"
    gained = gain_text(found) or "no figure"
    look = "open" if recommendation.predicted else "good"
    if found.verdict == BETTER:
        return look, f"{told}Confirmed: {gained} (95 % interval), from {launches}."
    if found.verdict == INCONCLUSIVE:
        return "open", f"{told}Not confirmed: {launches} were inconclusive ({gained})."
    return look, f"{told}Confirmed: no significant gain over the defaults ({gained}, {launches})."


def _command(recommendation: Recommendation) -> str:
    if not recommendation.to_confirm:
        return ""
    return f"<p>To confirm it:</p><pre class=command>{said(recommendation.to_confirm)}</pre>"


def _cards(recommendation: Recommendation | None) -> str:
    """The figures of the recommended point, each with its interval and the defaults' own."""
    if recommendation is None:
        return ""
    point, base = recommendation.point, recommendation.baseline or {}
    cards = [_card(metric, point, base) for metric in _CARDS if metric in point]
    cards.append(_cost_card(recommendation))
    word = "At" if recommendation.keeps_slo else "Nearest to the SLO: at"
    title = f"{word} {_where(point)}: {deployment_text(point['deployment'])}"
    return f"<p class=sub>{said(title)}</p><dl class=cards>{''.join(cards)}</dl>"


def _where(point: Mapping[str, Any]) -> str:
    """The load, and how many requests the figures rest on, where that is known."""
    return level_text(point) + (f", n={point['n']}" if point["n"] else "")


def _card(metric: str, point: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    interval = interval_text(point, metric)
    below = [f"95 %: {interval}" if interval else ""]
    if metric in base:
        times = _times(metric, point, base)
        told = f"defaults, same load: {metric_text(metric, base)}"
        below.append(told + (f" ({times})" if times else ""))
    doubtful = metric in str(point.get("low_confidence", "")).split()
    notes = [*below, "few requests" if doubtful else ""]
    small = "".join(f"<small>{said(note)}</small>" for note in notes if note)
    label = metric_label(metric, [point])
    return (
        f"<div class=card><dt>{said(label)}</dt>"
        f"<dd><span class=figure>{said(metric_text(metric, point))}</span>{small}</dd></div>"
    )


def _cost_card(recommendation: Recommendation) -> str:
    """What a million output tokens cost, in money where a price is known."""
    told = costs(recommendation.point, recommendation.price)
    price = recommendation.price
    if not told:
        return ""
    if price is None:
        figure, unit = told[DEVICE_SECONDS], "device seconds"
    else:
        figure, unit = told[COST], f"{price.currency} at {price.per_hour:g} an hour and device"
    return (
        f"<div class=card><dt>per million output tokens</dt><dd><span class=figure>"
        f"{number(figure)}</span><small>{said(unit)}</small></dd></div>"
    )


def _times(metric: str, point: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """``x2.32`` of the defaults' own; empty where that says nothing."""
    if metric == "quality" or not base.get(metric):
        return ""
    return f"x{point[metric] / base[metric]:.2f}"


def told_metrics(point: Mapping[str, Any]) -> list[str]:
    """Figures of a point; the system's is left out where it is that of its one device."""
    names = [metric for metric in METRIC_LABELS if metric in point]
    total, each = "output_tokens_per_s", "output_tokens_per_s_per_gpu"
    same = point.get(total) == point.get(each)
    return [name for name in names if name != total or not same]


def recommended(recommendation: Recommendation | None) -> str:
    """Settings, figures and what else is worth a look."""
    if recommendation is None:
        return ""
    settings = [[name, str(value)] for name, value in sorted(recommendation.deployment.items())]
    settings = settings or [["everything", "engine defaults"]]
    html = _shortfalls(recommendation)
    html += table(["Parameter", "Value"], settings, wide=[0, 1], caption="What to set")
    html += _figures(recommendation) + _speed_of_light(recommendation) + _again(recommendation)
    alternatives = [
        [row["why"], str(row["trial"]), level_text(row), deployment_text(row["deployment"])]
        for row in recommendation.alternatives
    ]
    if alternatives:
        columns = ["Why", "Trial", "Load", "Deployment"]
        html += table(columns, alternatives, wide=[3], caption="Other ends of the front")
    return html


def _shortfalls(recommendation: Recommendation) -> str:
    """Of a nearest miss: every limit, and how far it is."""
    rows = shortfall_rows(recommendation)
    columns = [name.capitalize() for name in SHORTFALL_COLUMNS]
    return table(columns, rows, caption="How far it is off") if rows else ""


def _figures(recommendation: Recommendation) -> str:
    point, base = recommendation.point, recommendation.baseline or {}
    rows = [
        [
            metric_label(metric, [point]),
            metric_text(metric, point),
            interval_text(point, metric) or "-",
            metric_text(metric, base),
            _times(metric, point, base) or "-",
        ]
        for metric in told_metrics(point)
    ]
    columns = ["Figure", "Recommended", "95 % interval", "Baseline", "Ratio"]
    made = table(columns, rows, numeric=range(1, 5))
    return folded(f"All figures at {_where(point)}", made)


def _speed_of_light(recommendation: Recommendation) -> str:
    """What the hardware allows at the recommended point, beside the baseline's at the same load."""
    point, base = recommendation.point, recommendation.baseline or {}
    rows = [
        [label, number(point[name]), number(base.get(name))]
        for name, label in PREDICTED_LABELS.items()
        if name in point
    ]
    if not rows:
        return ""
    columns = ["Bound", "Recommended", "Baseline"]
    made = table(columns, rows, numeric=range(1, 3))
    return folded("Speed of light (predicted)", made)


def _again(recommendation: Recommendation) -> str:
    """What was launched again beside the defaults."""
    rows = confirm_rows(recommendation)
    if not rows:
        return ""
    columns = [name.capitalize() for name in CONFIRM_COLUMNS]
    return table(columns, rows, caption=AGAIN)
