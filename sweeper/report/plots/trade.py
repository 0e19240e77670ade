"""What each way to store weights and cache buys, and what it costs in quality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any

from sweeper.report.plots.style import (
    GREY,
    NUMBERS,
    SERIES,
    SYMBOLS,
    VERMILLION,
    as_figure,
    clean,
    drawing,
    hover,
)
from sweeper.report.quality_words import PER_CENT
from sweeper.report.trade.table import THROUGHPUT, Trade, TradeRow, trade
from sweeper.report.trade.words import (
    kv_text,
    made_of_text,
    name_text,
    quality_text,
    ranking_quality,
    ratio_interval_text,
    ratio_text,
    value_text,
    verdict_text,
)
from sweeper.report.words import METRIC_LABELS
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

_SMALLEST, _LARGEST = 12.0, 34.0
# How far left of what works a broken one is drawn at most, in widths of what works.
_FAR = 0.35


def figure(outcomes: Sequence[TrialOutcome]) -> Any:
    """Throughput over the change of quality, a mark a way to store; see `draw`.

    Args:
        outcomes: every attempt.

    Returns:
        A `plotly.graph_objects.Figure`; None where there is one way to store alone, or no quality.
    """
    found = trade(outcomes)
    return as_figure(draw(found)) if found.says_something else None


def draw(found: Trade) -> dict[str, Any] | None:
    """Throughput over the change of quality, one mark a row; bars are 95 % intervals.

    Broken output may lie so far to the left that nothing else could be told apart: such marks stand
    at the left edge, with their figure beside them.

    Returns:
        Data and layout of plotly; None if no row that works has both figures.
    """
    ranking = ranking_quality(found)
    working = [row for row in found.rows if row.verdict is Verdict.OK and _place(row)]
    if ranking is None or not working:
        return None
    left, right = _span(working)
    broken = [
        row
        for row in found.rows
        if row.verdict is Verdict.QUALITY_FAIL and row.speeds.get(THROUGHPUT)
    ]
    largest = max((row.checkpoint_gib.value for row in working if row.checkpoint_gib), default=None)
    labels = dict.fromkeys(row.label for row in working)
    looks = dict(zip(labels, cycle(zip(SERIES, SYMBOLS, strict=True)), strict=False))
    unit = "percentage points" if ranking.unit == PER_CENT else f"{ranking.unit} (less is worse)"
    legend = {
        "orientation": "h",
        "y": -0.22,
        "yanchor": "top",
        "traceorder": "reversed",
        "itemsizing": "constant",
    }
    even = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1}
    return drawing(
        # Last is on top: nothing hides the baseline.
        [
            *(_broken(row, left) for row in reversed(broken)),
            *(_working(row, *looks[row.label], largest) for row in reversed(working)),
        ],
        540,
        legend=legend,
        margin={"l": 64, "r": 16, "t": 40, "b": 140},
        shapes=[{**even, "line": {"color": GREY, "dash": "dot", "width": 1}}],
        xaxis={
            "title": {"text": clean(f"change of {ranking.name}, {unit}")},
            "range": [left, right],
        },
        yaxis={
            "title": {"text": f"{METRIC_LABELS[THROUGHPUT]} at {found.level}"},
            "rangemode": "tozero",
            "tickformat": NUMBERS,
        },
    )


def _place(row: TradeRow) -> tuple[float, float] | None:
    """(change of quality, half its interval), in the unit of the axis; None without one."""
    quality = row.quality
    if quality is None or quality.change is None or THROUGHPUT not in row.speeds:
        return None
    if row.is_baseline:
        return 0.0, 0.0  # the others' changes have its noise in them
    unit, reach = 100.0 if quality.unit == PER_CENT else 1.0, quality.change.reach
    return unit * quality.change.value, unit * reach if math.isfinite(reach) else 0.0


def _span(working: Sequence[TradeRow]) -> tuple[float, float]:
    """Ends of the horizontal axis: what works, and a margin."""
    places = [place for row in working if (place := _place(row)) is not None]
    low = min(0.0, *(x - reach for x, reach in places))
    high = max(0.0, *(x + reach for x, reach in places))
    width = (high - low) or 1.0
    return low - _FAR * width, high + 0.1 * width


def _working(row: TradeRow, colour: str, symbol: str, largest: float | None) -> Any:
    x, reach = _place(row) or (0.0, 0.0)
    y, below, above = _speed(row)
    size = _SMALLEST
    if row.checkpoint_gib is not None and largest:
        size = max(size, _LARGEST * (row.checkpoint_gib.value / largest) ** 0.5)
    return {
        "type": "scatter",
        "x": [x],
        "y": [y],
        "error_x": {"type": "data", "array": [reach], "color": colour, "thickness": 1.2},
        "error_y": _bars(colour, below, above),
        "mode": "markers",
        "name": clean(name_text(row)),
        "text": [hover_text(row)],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "size": size,
            "opacity": 0.9,
            "line": {"color": "#fff", "width": 1.5},
            "color": VERMILLION if row.is_baseline else colour,
            "symbol": "diamond" if row.is_baseline else symbol,
        },
    }


def _broken(row: TradeRow, left: float) -> Any:
    place = _place(row)
    y, below, above = _speed(row)
    is_far = place is None or place[0] < left
    beside = "" if place is None else f"{place[0]:+.3g}"
    return {
        "type": "scatter",
        "x": [left if place is None or is_far else place[0]],
        "y": [y],
        "error_y": _bars(VERMILLION, below, above),
        "mode": "markers+text" if is_far else "markers",
        "name": clean(f"{name_text(row)}: {verdict_text(row)}"),
        "text": [f"  ◂ {beside}" if beside else "  no figure"],
        "textposition": "middle right",
        "textfont": {"color": VERMILLION},
        "hovertext": [hover_text(row)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "marker": {"size": 15, "color": VERMILLION, "symbol": "x"},
    }


def _speed(row: TradeRow) -> tuple[float, float, float]:
    """(tokens/s, down to the interval's lower end, up to its upper end)."""
    figure = row.speeds[THROUGHPUT]
    if figure.interval is None:
        return figure.value, 0.0, 0.0
    low, high = figure.interval
    return figure.value, max(0.0, figure.value - low), max(0.0, high - figure.value)


def _bars(colour: str, below: float, above: float) -> dict[str, Any]:
    return {
        "type": "data",
        "array": [above],
        "arrayminus": [below],
        "color": colour,
        "thickness": 1.2,
    }


def hover_text(row: TradeRow) -> str:
    """Lines of a mark, as HTML with everything from outside escaped."""
    tokens, gain = kv_text(row)
    speed = row.speeds.get(THROUGHPUT)
    lines = [
        name_text(row),
        made_of_text(row),
        f"trial {row.trial}: {verdict_text(row)}",
        f"{METRIC_LABELS[THROUGHPUT]}: {value_text(speed)} {ratio_text(speed)} "
        f"{ratio_interval_text(speed)}",
        f"quality: {' '.join(quality_text(row))}",
        f"checkpoint GiB: {value_text(row.checkpoint_gib)} {ratio_text(row.checkpoint_gib)}",
        f"KV cache tokens: {tokens} {gain}",
    ]
    return hover(line.strip() for line in lines if line)
