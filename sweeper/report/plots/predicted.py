"""What was predicted before a launch, over what it measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sweeper.pareto.points import latest_attempts
from sweeper.report.plots.style import (
    GREY,
    SERIES,
    SYMBOLS,
    as_figure,
    clean,
    drawing,
    hover,
    log_axis,
    panel_title,
)
from sweeper.report.words import METRIC_LABELS, deployment_text, number
from sweeper.search.priors.record import predictions_of
from sweeper.search.priors.worth import as_points
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

METRICS = ("output_tokens_per_s_per_gpu", "ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms")

Pair = tuple[float, float, str]
"""Measured, predicted, hover text."""


def figure(outcomes: Sequence[TrialOutcome]) -> Any:
    """`draw` as a `plotly.graph_objects.Figure`."""
    return as_figure(draw(outcomes))


def draw(outcomes: Sequence[TrialOutcome]) -> dict[str, Any] | None:
    """Predicted over measured, a panel a metric; on the diagonal a prediction is right.

    A mark is an operating point, told apart by what predicted it. Predictions are drawn as their
    source gave them, before any calibration.

    Returns:
        Data and layout of plotly; None where nothing was both predicted and measured.
    """
    found = pairs(outcomes)
    metrics = [m for m in METRICS if any(m in by_metric for by_metric in found.values())]
    if not metrics:
        return None
    columns = min(2, len(metrics))
    lines = -(-len(metrics) // columns)
    traces: list[dict[str, Any]] = []
    titles, layout = [], {}
    for place, metric in enumerate(metrics):
        number = "" if place == 0 else str(place + 1)
        line, column = divmod(place, columns)
        across, down = _domain(column, columns), _domain(lines - 1 - line, lines)
        marks, low, high = _panel(found, metric, is_first=place == 0)
        traces += [one | {"xaxis": f"x{number}", "yaxis": f"y{number}"} for one in marks]
        titles.append(panel_title(METRIC_LABELS[metric], across[0], down[1]))
        for way, name, other, domain in (
            ("x", "measured", "y", across), ("y", "predicted", "x", down),
        ):  # fmt: skip
            layout[f"{way}axis{number}"] = {
                **log_axis(name, low, high), "anchor": f"{other}{number}", "domain": domain,
            }  # fmt: skip
    legend = {"orientation": "h", "y": 1 + 30 / (320 * lines), "yanchor": "bottom", "x": 0}
    return drawing(traces, 140 + 320 * lines, legend=legend, annotations=titles, **layout)


def _domain(place: int, count: int, gap: float = 0.14) -> list[float]:
    """Where a panel stands among others, as a share of the figure."""
    size = (1 - gap * (count - 1)) / count
    start = place * (size + gap)
    return [start, start + size]


def pairs(outcomes: Sequence[TrialOutcome]) -> dict[str, dict[str, list[Pair]]]:
    """Kind of prior → metric → pairs of all operating points that have both."""
    found: dict[str, dict[str, list[Pair]]] = {}
    for outcome in latest_attempts(outcomes):
        if outcome.verdict is Verdict.OK and outcome.repeats is None:
            for kind, metric, pair in _of(outcome):
                found.setdefault(kind, {}).setdefault(metric, []).append(pair)
    return found


def _of(outcome: TrialOutcome) -> Iterator[tuple[str, str, Pair]]:
    measured = {point.level: point.metrics for point in outcome.valid_points}
    for kind, prediction in predictions_of(outcome).items():
        for guess in as_points(prediction, {}):
            for metric in METRICS:
                value = measured.get(guess.level, {}).get(metric)
                told = guess.metrics.get(metric)
                if value and told and value > 0 and told > 0:
                    text = hover(
                        [
                            f"trial {outcome.number}, {guess.level}",
                            f"{METRIC_LABELS[metric]}: {number(told)} predicted ({kind}), "
                            f"{number(value)} measured ({told / value - 1:+.0%})",
                            deployment_text(outcome.deployment),
                        ]
                    )
                    yield kind, metric, (value, told, text)


def _panel(
    found: dict[str, dict[str, list[Pair]]], metric: str, *, is_first: bool
) -> tuple[list[dict[str, Any]], float, float]:
    """(traces of one metric, its lowest and highest figure)."""
    every = [pair for by_metric in found.values() for pair in by_metric.get(metric, [])]
    low = min(min(pair[:2]) for pair in every)
    high = max(max(pair[:2]) for pair in every)
    right = {
        "type": "scatter",
        "x": [low, high],
        "y": [low, high],
        "mode": "lines",
        "name": "predicted = measured",
        "legendgroup": "right",
        "showlegend": is_first,
        "line": {"color": GREY, "dash": "dash", "width": 1.5},
        "hoverinfo": "skip",
    }
    marks = [
        {
            "type": "scatter",
            "x": [x for x, _, _ in by_metric.get(metric, [])],
            "y": [y for _, y, _ in by_metric.get(metric, [])],
            "hovertext": [text for _, _, text in by_metric.get(metric, [])],
            "hovertemplate": "%{hovertext}<extra></extra>",
            "mode": "markers",
            "name": clean(kind),
            "legendgroup": kind,
            "showlegend": is_first,
            "marker": {
                "color": SERIES[place % len(SERIES)],
                "symbol": SYMBOLS[place % len(SYMBOLS)],
                "size": 8,
                "opacity": 0.8,
            },
        }
        for place, (kind, by_metric) in enumerate(found.items())
    ]
    return [right, *marks], low, high
