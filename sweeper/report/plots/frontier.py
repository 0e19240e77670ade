"""Throughput per device over what one user sees: the front, the baseline, the promise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeper.config.schema import SloConfig
from sweeper.pareto.points import row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.repeats import BASELINE
from sweeper.pareto.rule import limits, misses
from sweeper.pareto.select import LATENCIES, THROUGHPUT, front_mask, selectable
from sweeper.report.plots.hover import Texts, point_text, point_texts
from sweeper.report.plots.style import (
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    as_figure,
    bars,
    drawing,
    log_axis,
)
from sweeper.report.words import METRIC_LABELS

if TYPE_CHECKING:
    import pandas as pd

PER_USER = "output_tokens_per_s_per_user"
_CEILING, _TOTAL = "predicted.output_tokens_per_s_ceiling", "output_tokens_per_s"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class View:
    """What the horizontal axis may show.

    Attributes:
        label: on the switch.
        metric: the figure.
        title: of the axis.
        floor: the figure of the speed of light that bounds it, None without one.
    """

    label: str
    metric: str
    title: str
    floor: str | None = None


def _latency(metric: str, floor: str | None = None) -> View:
    label = METRIC_LABELS[metric]
    return View(label.removesuffix(" ms"), metric, f"{label} (less is better)", floor)


VIEWS: Mapping[str, View] = {
    "user": View("tokens/s per user", PER_USER, "output tokens/s per user (more is better)"),
    "ttft": _latency("ttft_p95_ms", "predicted.ttft_floor_ms"),
    "tpot": _latency("tpot_p95_ms", "predicted.tpot_floor_ms"),
    "e2e": _latency(LATENCIES[0]),
    "e2e_mean": _latency(LATENCIES[1]),
    "e2e_p50": _latency(LATENCIES[2]),
}
"""The first is how throughput per device is usually drawn against what a user gets."""


def views(frame: pd.DataFrame) -> list[str]:
    """Keys of `VIEWS` whose figure was measured beside the throughput, in their order."""
    rows = _rows(selectable(frame)) if len(frame) else []
    return [
        key
        for key, view in VIEWS.items()
        if any(THROUGHPUT in row and view.metric in row for row in rows)
    ]


def figure(
    frame: pd.DataFrame,
    recommendation: Recommendation | None = None,
    *,
    slo: SloConfig | None = None,
    view: str | None = None,
) -> Any:
    """`drawing` as a `plotly.graph_objects.Figure`."""
    return as_figure(draw(frame, recommendation, slo=slo, view=view))


def draw(
    frame: pd.DataFrame,
    recommendation: Recommendation | None = None,
    *,
    slo: SloConfig | None = None,
    view: str | None = None,
) -> dict[str, Any] | None:
    """Tokens/s per device over a view's axis, both logarithmic.

    Every valid point is there; the front, the baseline and the recommendation stand out and have
    their 95 % intervals. Traces are the same, in the same order, whatever the view.

    Args:
        frame: of `points_frame`.
        recommendation: marked by a star.
        slo: the promise; None takes the recommendation's. Points that keep it are filled, and its
            region is drawn where the axis is one of its metrics.
        view: a key of `VIEWS`; None takes the first that was measured.

    Returns:
        Data and layout of plotly; None where no valid point has both figures.
    """
    known = views(frame)
    if not known or (view is not None and view not in known):
        return None
    return _draw(_Points.of(frame, recommendation, slo, None), VIEWS[view or known[0]])


def draw_views(
    frame: pd.DataFrame,
    recommendation: Recommendation | None,
    slo: SloConfig | None,
    texts: Texts,
) -> list[tuple[str, dict[str, Any]]]:
    """(label, `draw`) of every view, with the words of each point made beforehand."""
    points = _Points.of(frame, recommendation, slo, texts)
    return [(VIEWS[key].label, _draw(points, VIEWS[key])) for key in views(frame)]


@dataclass(frozen=True)
class _Points:
    """What is drawn, whatever the view: rows off the front, of the baseline, and on the front."""

    others: Sequence[Row]
    base: Sequence[Row]
    front: Sequence[Row]
    recommendation: Recommendation | None
    promise: Mapping[str, float]
    texts: Texts

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        recommendation: Recommendation | None,
        slo: SloConfig | None,
        texts: Texts | None,
    ) -> _Points:
        valid = selectable(frame)
        is_base = valid["kind"] == BASELINE
        is_front = valid.index.isin(frame.index[front_mask(frame)])
        parts = (valid[~is_front & ~is_base], valid[is_base], valid[is_front])
        others, base, front = (_rows(part) for part in parts)
        known = point_texts([*others, *base, *front]) if texts is None else texts
        promise = _promise(recommendation, slo)
        return cls(others, base, front, recommendation, promise, known)


def _draw(points: _Points, seen: View) -> dict[str, Any]:
    every = [*points.others, *points.base, *points.front]
    kind = "predicted" if all(row["predicted"] for row in every) else "measured"
    off = _Look(f"{kind}, not on the front", GREY, "circle", 7)
    own = _Look("engine defaults (baseline)", VERMILLION, "diamond", 11)
    traces = [
        _light(points.base, seen),
        _marks(points, points.others, seen, off),
        _marks(points, points.base, seen, own),
        _marks(points, points.front, seen, _Look("Pareto front", BLUE, "circle", 11)),
        _star(points.recommendation, seen),
    ]
    drawn = [trace for trace in traces if trace is not None]
    limit = points.promise.get(seen.metric)
    return drawing(
        drawn,
        540,
        xaxis=log_axis(seen.title, *_ends(drawn, "x", limit)),
        yaxis=log_axis("output tokens/s per device (more is better)", *_ends(drawn, "y")),
        **({} if limit is None else _promised(seen, limit)),
    )


@dataclass(frozen=True)
class _Look:
    """Name, colour, symbol and size of marks."""

    name: str
    colour: str
    symbol: str
    size: int


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [row_dict(row) for row in frame.to_dict("records")]


def _promise(recommendation: Recommendation | None, slo: SloConfig | None) -> dict[str, float]:
    if slo is not None:
        return limits(slo)
    return {} if recommendation is None else dict(recommendation.slo)


def _marks(points: _Points, rows: Sequence[Row], seen: View, look: _Look) -> dict[str, Any]:
    """One trace; the baseline's points are joined, in the order of their load."""
    kept = [not misses(row, points.promise) for row in rows]
    is_plain = look.colour == GREY
    errors = {
        f"error_{way}": {"visible": False} if is_plain else _bars(rows, metric, look.colour)
        for way, metric in (("x", seen.metric), ("y", THROUGHPUT))
    }
    return dict(
        type="scatter",
        x=[row.get(seen.metric) for row in rows],
        y=[row.get(THROUGHPUT) for row in rows],
        name=look.name,
        mode="lines+markers" if look.symbol == "diamond" else "markers",
        line={"color": look.colour, "dash": "dot", "width": 1.5},
        marker={
            "color": look.colour,
            "size": look.size,
            "opacity": 0.7 if is_plain else 1.0,
            "symbol": [look.symbol if keeps else f"{look.symbol}-open" for keeps in kept],
            "line": {"width": 1.5, "color": look.colour},
        },
        hovertext=[points.texts[row["trial"], row["level"]] for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
        **errors,
    )


def _bars(rows: Sequence[Row], metric: str, colour: str) -> dict[str, Any]:
    ends = [[row.get(f"{metric}.{end}") for row in rows] for end in ("low", "high")]
    return {**bars([row.get(metric) for row in rows], *ends), "color": colour}


def _light(base: Sequence[Row], seen: View) -> Any:
    """What the hardware allows the defaults at each load; it is predicted."""
    places = [place for row in base if (place := _light_place(row, seen)) is not None]
    if not any(_CEILING in row for row in base):
        return None
    return {
        "type": "scatter",
        "x": [x for x, _ in places],
        "y": [y for _, y in places],
        "name": "speed of light of the defaults (predicted)",
        "mode": "lines+markers",
        "line": {"color": GREY, "dash": "dash", "width": 1.5},
        "marker": {"symbol": "line-ns-open", "size": 8, "color": GREY},
        "hovertemplate": "speed of light (predicted)<br>%{x:,.3~r} and %{y:,.3~r} "
        "tokens/s per device at most<extra></extra>",
    }


def _light_place(row: Row, seen: View) -> tuple[float, float] | None:
    """(bound of the axis, bound of the throughput per device) of a point; None if not known."""
    ceiling, total, per_device = row.get(_CEILING), row.get(_TOTAL), row.get(THROUGHPUT)
    if not ceiling or not total or not per_device:
        return None
    y = ceiling * per_device / total
    if seen.metric == PER_USER:
        own = row.get(PER_USER)
        return None if not own else (ceiling * own / total, y)
    floor = row.get(seen.floor) if seen.floor else None
    return None if not floor else (floor, y)


def _star(recommendation: Recommendation | None, seen: View) -> Any:
    if recommendation is None:
        return None
    row = recommendation.point
    return {
        "type": "scatter",
        "x": [row.get(seen.metric)],
        "y": [row.get(THROUGHPUT)],
        "mode": "markers",
        "name": "recommended" if recommendation.keeps_slo else "nearest to the SLO",
        "error_x": _bars([row], seen.metric, GREEN),
        "error_y": _bars([row], THROUGHPUT, GREEN),
        "hovertext": [point_text(row)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"size": 20, "color": GREEN, "symbol": "star", "line": {"width": 0}},
    }


def _ends(traces: Sequence[Any], way: str, limit: float | None = None) -> tuple[float, float]:
    """Lowest and highest of what is drawn; a limit is brought into view where it is not far off.

    Not left to plotly: a region that is drawn would stretch what it finds.
    """
    values = [float(v) for trace in traces for v in trace[way] if v is not None and v > 0]
    low, high = min(values), max(values)
    if limit is not None and low / 4 < limit < high * 4:
        return min(low, limit), max(high, limit)
    return low, high


def _promised(seen: View, limit: float) -> dict[str, Any]:
    """The region that keeps a limit of the axis, and the limit itself."""
    edge = {"xref": "x", "yref": "paper", "x1": limit, "y0": 0, "y1": 1}
    region = {"fillcolor": GREEN, "opacity": 0.1, "line": {"width": 0}, "layer": "below"}
    line = {"color": GREEN, "width": 1.5, "dash": "dash"}
    return {
        "shapes": [
            {"type": "rect", "x0": limit / 1e6, **edge, **region},
            {"type": "line", "x0": limit, **edge, "line": line},
        ],
        "annotations": [
            {
                "text": f"SLO: {METRIC_LABELS[seen.metric]} ≤ {limit:g}",
                "font": {"color": GREEN},
                "xref": "x",
                "yref": "paper",
                "x": math.log10(limit),
                "y": 0,
                "xanchor": "right",
                "yanchor": "bottom",
                "showarrow": False,
            }
        ],
    }
