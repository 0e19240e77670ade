"""Load ladders: throughput and latency of each deployment over the load."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SloConfig
from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.repeats import BASELINE
from sweeper.pareto.rule import limits
from sweeper.pareto.select import THROUGHPUT, front_mask, latency_of, selectable
from sweeper.report.plots.hover import Texts, point_texts
from sweeper.report.plots.style import (
    BLUE,
    GREEN,
    GREY,
    NUMBERS,
    VERMILLION,
    as_figure,
    bars,
    drawing,
    log_axis,
)
from sweeper.report.words import METRIC_LABELS

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
LATENCIES = ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms", "e2e_mean_ms", "e2e_p50_ms")
_MOST_MARKS = 300
"""Marks of what is in the background; of more there are lines alone, which draw faster."""
_ASKED = {"concurrency": "concurrent streams", "rate_per_s": "requests/s offered"}


def latencies(frame: pd.DataFrame) -> list[str]:
    """Latencies that a ladder can be drawn of."""
    valid = selectable(frame) if len(frame) else frame
    return [name for name in LATENCIES if name in valid.columns and valid[name].notna().any()]


def figure(
    frame: pd.DataFrame,
    recommendation: Recommendation | None = None,
    *,
    slo: SloConfig | None = None,
    latency: str | None = None,
) -> Any:
    """`draw` as a `plotly.graph_objects.Figure`."""
    return as_figure(draw(frame, recommendation, slo=slo, latency=latency))


def draw(
    frame: pd.DataFrame,
    recommendation: Recommendation | None = None,
    *,
    slo: SloConfig | None = None,
    latency: str | None = None,
    texts: Texts | None = None,
) -> dict[str, Any] | None:
    """Tokens/s per device above a latency, over the load; a line a deployment.

    The recommended deployment, the defaults and those with a point on the front stand out.

    Args:
        frame: of `points_frame`.
        recommendation: whose deployment is marked.
        slo: the promise, a line in the lower half; None takes the recommendation's.
        latency: a metric of `latencies`; None takes `latency_of`.
        texts: words of each point, if they were made before.

    Returns:
        Data and layout of plotly; None where no deployment was driven at two levels.
    """
    latency = latency or latency_of(frame)
    rows = _rows(frame, latency)
    asked = _asked(rows)
    if asked is None:
        return None
    told = point_texts(rows) if texts is None else texts
    front = {int(number) for number in frame["trial"][front_mask(frame)]}
    traces = [
        _line(lines, asked, metric, look, told) | {"yaxis": axis, "showlegend": axis == "y"}
        for look, lines in _groups(rows, front, recommendation)
        for metric, axis in ((THROUGHPUT, "y"), (latency, "y2"))
    ]
    levels = sorted({row[asked] for row in rows})
    ends = [row[latency] for row in rows]
    upper = {"title": {"text": "tokens/s per device"}, "rangemode": "tozero"}
    promise = limits(slo) if slo is not None else getattr(recommendation, "slo", {})
    return drawing(
        traces,
        560,
        xaxis={
            "title": {"text": _ASKED[asked]},
            "type": "log",
            "tickvals": levels,
            "ticktext": [f"{level:g}" for level in levels],
            "anchor": "y2",
        },
        yaxis={**upper, "tickformat": NUMBERS, "domain": [0.53, 1]},
        yaxis2={**log_axis(METRIC_LABELS[latency], min(ends), max(ends)), "domain": [0, 0.47]},
        **_promised(promise.get(latency)),
    )


def _promised(limit: float | None) -> dict[str, Any]:
    """A line at the limit, in the lower half."""
    if limit is None:
        return {}
    line = {"color": GREEN, "dash": "dash", "width": 1.5}
    across = {"xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": limit, "y1": limit}
    place = {"xref": "paper", "x": 1, "yref": "y2", "y": math.log10(limit), "showarrow": False}
    words = {"text": f"SLO {limit:g} ms", "font": {"color": GREEN}}
    anchors = {"xanchor": "right", "yanchor": "bottom"}
    return {
        "shapes": [{"type": "line", "line": line, **across}],
        "annotations": [{**words, **place, **anchors}],
    }


def _rows(frame: pd.DataFrame, latency: str) -> list[dict[str, Any]]:
    if not len(frame):
        return []
    rows = [row_dict(row) for row in selectable(frame).to_dict("records")]
    return [row for row in rows if THROUGHPUT in row and row.get(latency, 0.0) > 0]


def _asked(rows: Sequence[Row]) -> str | None:
    """What the load was counted in; None where nothing was driven at two levels of one kind."""
    for name in _ASKED:
        steps: dict[int, set[float]] = {}
        for row in rows:
            if row.get(name):
                steps.setdefault(row["trial"], set()).add(row[name])
        if all(row.get(name) for row in rows) and any(len(one) > 1 for one in steps.values()):
            return name
    return None


_Look = tuple[str, str, str]


def _groups(
    rows: Sequence[Row], front: set[int], recommendation: Recommendation | None
) -> list[tuple[_Look, list[Row]]]:
    """((name, colour, symbol), rows) of what is drawn alike; what is drawn last lies on top."""
    chosen = None if recommendation is None else recommendation.trial
    found: dict[str, list[Row]] = {"others": [], "front": [], "baseline": [], "chosen": []}
    for row in rows:
        is_base = row["kind"] == BASELINE
        kind = "baseline" if is_base else "front" if row["trial"] in front else "others"
        found["chosen" if row["trial"] == chosen and not is_base else kind].append(row)
    word = "recommended" if recommendation is None or recommendation.keeps_slo else "nearest"
    named = (
        (("other deployments", GREY, "circle"), found["others"]),
        (("with a point on the front", BLUE, "square"), found["front"]),
        (("engine defaults (baseline)", VERMILLION, "diamond"), found["baseline"]),
        ((f"{word}: trial {chosen}", GREEN, "star"), found["chosen"]),
    )
    return [group for group in named if group[1]]


def _line(
    rows: Sequence[Row], asked: str, metric: str, look: _Look, texts: Texts
) -> dict[str, Any]:
    """One trace for a whole group: its deployments are parted by gaps."""
    name, colour, symbol = look
    parted: list[Row] = []
    ordered = sorted(rows, key=lambda row: (row["trial"], row[asked]))
    for row in ordered:
        if parted and parted[-1]["trial"] != row["trial"]:
            parted.append({"trial": None})
        parted.append(row)
    values = [row.get(metric) for row in parted]
    ends = ([row.get(f"{metric}.{end}") for row in parted] for end in ("low", "high"))
    is_plain = symbol == "circle"
    return {
        "type": "scatter",
        "x": [row.get(asked) for row in parted],
        "y": values,
        "name": name,
        "legendgroup": name,
        "mode": "lines" if is_plain and len(parted) > _MOST_MARKS else "lines+markers",
        "connectgaps": False,
        "line": {"color": colour, "width": 1 if is_plain else 2},
        "opacity": 0.7 if is_plain else 1.0,
        "marker": {"size": {"circle": 4, "star": 13}.get(symbol, 9), "symbol": symbol},
        "error_y": {"visible": False} if is_plain else {**bars(values, *ends), "color": colour},
        "hovertext": [texts[row["trial"], row["level"]] if len(row) > 1 else "" for row in parted],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
