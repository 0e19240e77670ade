"""How much each parameter mattered, with how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sweeper.report.importance.compute import Importance
from sweeper.report.importance.insight import Insight
from sweeper.report.plots.style import BLUE, GREY, as_figure, clean, drawing, hover, panel_title

_BAR_PX, _TITLE_PX, _TICKS_PX = 26, 30, 28


def figure(found: Insight) -> Any:
    """`draw` as a `plotly.graph_objects.Figure`."""
    return as_figure(draw(found))


def draw(found: Insight) -> dict[str, Any] | None:
    """Shares with their intervals, a panel a figure of the study, one below the other.

    What is no better than a shuffled copy is grey and hatched.

    Returns:
        Data and layout of plotly; None where there were too few trials to say anything.
    """
    if not found.tables:
        return None
    sizes = [_BAR_PX * len(ones) for ones in found.tables.values()]
    inner = sum(sizes) + (_TITLE_PX + _TICKS_PX) * (len(sizes) - 1)
    traces, titles, layout, top = [], [], {}, float(inner)
    for place, (name, ones) in enumerate(found.tables.items(), start=1):
        number = "" if place == 1 else str(place)
        bottom = top - _BAR_PX * len(ones)
        traces.append(_bars(ones) | {"xaxis": f"x{number}", "yaxis": f"y{number}"})
        titles.append(panel_title(name, 0, top / inner))
        layout[f"xaxis{number}"] = {
            "tickformat": ".0%", "range": [0, 1.02], "anchor": f"y{number}",
        }  # fmt: skip
        layout[f"yaxis{number}"] = {
            "autorange": "reversed",
            "anchor": f"x{number}",
            "domain": [bottom / inner, top / inner],
        }
        top = bottom - _TITLE_PX - _TICKS_PX
    margin = {"l": 16, "r": 16, "t": 64, "b": 36}
    return drawing(
        traces, inner + 100, showlegend=False, margin=margin, annotations=titles, **layout
    )


def _bars(ones: Sequence[Importance]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "x": [one.share for one in ones],
        "y": [
            clean(one.parameter) + (f" ({clean(one.condition)})" if one.condition else "")
            for one in ones
        ],
        "error_x": {
            "type": "data",
            "array": [one.high - one.share for one in ones],
            "arrayminus": [one.share - one.low for one in ones],
            "thickness": 1.2,
        },
        "marker": {
            "color": [BLUE if one.matters else GREY for one in ones],
            "pattern": {"shape": ["" if one.matters else "/" for one in ones]},
        },
        "hovertext": [hover([_words(one)]) for one in ones],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _words(one: Importance) -> str:
    verdict = "matters" if one.matters else "within noise"
    spread = f"{one.low:.0%} to {one.high:.0%} of 9 in 10 forests"
    return f"{one.parameter}: {one.share:.0%} ({spread}), {verdict}, {one.trials} trials"
