"""What all figures have in common: colours, marks, text that is escaped, and the empty page.

A page restyles the figures for dark and light, so every colour of a mark can be seen on both: it
has a contrast of at least 3 against white and against the dark page. Colours can be told apart
without red or green (after Okabe and Ito, 2008), and no colour says what a shape does not.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from sweeper.redaction import shown

GREY, BLUE, VERMILLION, GREEN = "#7d8894", "#1f7fbf", "#d55e00", "#00906b"
PURPLE, OCHRE, TEAL, BROWN = "#a85fb0", "#a97f00", "#0f8b8d", "#a0653a"
SERIES = (BLUE, OCHRE, PURPLE, TEAL, BROWN, "#c0507a", "#5f8a2b", "#6a79c9")
"""For marks that are told apart by name."""
SYMBOLS = (
    "circle",
    "square",
    "triangle-up",
    "pentagon",
    "hexagon",
    "star-square",
    "triangle-down",
    "hourglass",
)

NUMBERS = ",.3~r"
"""How ticks are written: in full, three digits."""

WRAP = 64
"""Letters in a line of hover text."""
_LONGEST = 600


def clean(text: object) -> str:
    """Text from outside for a figure, where plotly would read it as HTML."""
    return html.escape(shown(str(text)))


def hover(lines: Iterable[str]) -> str:
    """Lines as plotly writes them, wrapped and escaped; what is endless is cut."""
    made: list[str] = []
    # All at once: what is secret is looked up anew for every text.
    for line in shown("\n".join(" ".join(line.split()) for line in lines)).split("\n"):
        plain = " ".join(line.split())
        cut = plain if len(plain) <= _LONGEST else plain[:_LONGEST] + " …"
        made += textwrap.wrap(cut, WRAP, break_on_hyphens=False) or [""]
    return "<br>".join(html.escape(line) for line in made)


def bars(middle: Iterable[float | None], low: Iterable[Any], high: Iterable[Any]) -> dict[str, Any]:
    """Error bars from the ends of intervals; none where an end is missing."""
    above, below = [], []
    for value, bottom, top in zip(middle, low, high, strict=True):
        known = None not in (value, bottom, top)
        above.append(max(0.0, top - value) if known else None)
        below.append(max(0.0, value - bottom) if known else None)
    if not any(above) and not any(below):
        return {"visible": False}
    return {"type": "data", "array": above, "arrayminus": below, "thickness": 1.2, "width": 3}


def log_axis(title: str, low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis from `low` to `high` and a margin, with numbers in full at its ticks."""
    margin = 0.06 * math.log10(high / low) + 0.05
    made: dict[str, Any] = {
        "title": {"text": title},
        "type": "log",
        "range": [math.log10(low) - margin, math.log10(high) + margin],
        "tickformat": NUMBERS,
    }
    # 1, 2, 5 a decade; where that would be too few, plotly chooses.
    return made | ({"dtick": "D2"} if high / low > 4 else {"nticks": 6})


def drawing(
    traces: Iterable[Mapping[str, Any] | None], height: int, **layout: Any
) -> dict[str, Any]:
    """Traces and a layout in the look of the report, as plain data; None among traces is left out.

    Args:
        traces: each with its ``type``.
        height: in pixels.
        layout: further settings of plotly; axes get theirs here.
    """
    look: dict[str, Any] = {
        "height": height,
        "margin": {"l": 64, "r": 16, "t": 72, "b": 56},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        "hoverlabel": {"align": "left", "namelength": -1},
        "hovermode": "closest",
        "font": {"size": 13},
        **layout,
    }
    for name, settings in layout.items():
        if name.startswith(("xaxis", "yaxis")):
            look[name] = {"automargin": True, "zeroline": False, **settings}
    return {"data": [dict(trace) for trace in traces if trace is not None], "layout": look}


def as_figure(made: Mapping[str, Any] | None) -> Any:
    """Plain data as a `plotly.graph_objects.Figure`, which checks it; None stays None."""
    if made is None:
        return None
    import plotly.graph_objects as go

    figure = go.Figure(data=made["data"], layout=made["layout"])
    figure.update_layout(template="plotly_white")
    return figure


def panel_title(text: str, x: float, y: float) -> dict[str, Any]:
    """The title of one of several panels, as an annotation at its upper left corner."""
    place = {"xref": "paper", "yref": "paper", "x": x, "y": y}
    look = {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 13}}
    return {"text": clean(text), **place, **look}
