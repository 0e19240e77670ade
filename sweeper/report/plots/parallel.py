"""Parallel coordinates: what each deployment set, and what came of it.

Drawn as lines, not as plotly's own `parcoords`: those need WebGL, tell nothing of a line that is
pointed at, and do not print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.pareto.points import latest_attempts, points_frame, row_dict
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.repeats import BASELINE, CONFIRM
from sweeper.pareto.select import THROUGHPUT, front_mask, latency_of, selectable
from sweeper.report.plots.style import (
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    as_figure,
    clean,
    drawing,
    hover,
)
from sweeper.report.words import METRIC_LABELS, deployment_text, metric_label
from sweeper.report.words import number as number_text
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

DEFAULT = "default"
_MOST = 12
"""Parameters that are drawn; of more, those with the most values."""
_MOST_MARKS = 1500
_TICKS = 8
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """One upright line.

    Attributes:
        title: what stands below it.
        places: trial → height, 0 to 1; a trial without the figure is absent.
        ticks: (height, text).
    """

    title: str
    places: Mapping[int, float]
    ticks: Sequence[tuple[float, str]]


def figure(outcomes: Sequence[TrialOutcome], recommendation: Recommendation | None = None) -> Any:
    """`draw` as a `plotly.graph_objects.Figure`."""
    return as_figure(draw(outcomes, recommendation))


def draw(
    outcomes: Sequence[TrialOutcome], recommendation: Recommendation | None = None
) -> dict[str, Any] | None:
    """A line a deployment through its settings and, where it worked, through its figures.

    The figures are those of the load level of the recommendation, or of the level that most
    deployments were driven at; a deployment that was not has those of its own highest throughput.

    Args:
        outcomes: every attempt.
        recommendation: marked in its own colour.

    Returns:
        Data and layout of plotly; None where no two deployments differ.
    """
    trials = {o.number: o for o in latest_attempts(outcomes) if o.kind != CONFIRM}
    settings = _setting_axes(trials)
    if not settings:
        return None
    frame = points_frame(outcomes)
    rows = _rows_by_trial(frame, recommendation)
    axes = [*settings, *_figure_axes(rows, latency_of(frame))]
    return drawing(
        [
            _lines(numbers, trials, rows, axes, look)
            for look, numbers in _groups(trials, frame, rows, recommendation)
        ],
        560,
        xaxis={
            "tickvals": list(range(len(axes))),
            "ticktext": ["<br>".join(_broken(axis.title)) for axis in axes],
            "range": [-0.25, len(axes) - 0.55],
            "showgrid": False,
        },
        yaxis={"visible": False, "range": [-0.04, 1.04]},
        shapes=[_upright(place) for place in range(len(axes))],
        annotations=[_tick(place, *tick) for place, axis in enumerate(axes) for tick in axis.ticks],
    )


def _upright(place: int) -> dict[str, Any]:
    line = {"color": GREY, "width": 1}
    return {
        "type": "line",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": line,
    }


def _tick(place: int, height: float, text: str) -> dict[str, Any]:
    look: dict[str, Any] = {"showarrow": False, "xanchor": "left", "xshift": 5}
    look |= {"font": {"size": 11}, "bgcolor": "rgba(255,255,255,0.8)", "borderpad": 1}
    return {"x": place, "y": height, "text": clean(text), **look}


def _setting_axes(trials: Mapping[int, TrialOutcome]) -> list[Axis]:
    """One a parameter that is not the same in all deployments."""
    names = dict.fromkeys(name for o in trials.values() for name in sorted(o.deployment))
    values = {
        name: {number: o.deployment.get(name, DEFAULT) for number, o in trials.items()}
        for name in names
    }
    varied = [name for name in names if len({str(v) for v in values[name].values()}) > 1]
    varied = sorted(varied, key=lambda name: -len({str(v) for v in values[name].values()}))[:_MOST]
    return [_setting_axis(name, values[name]) for name in sorted(varied)]


def _setting_axis(name: str, values: Mapping[int, Any]) -> Axis:
    """Values at even distances: numbers by size, then words, the engine's default lowest."""

    def rank(value: Any) -> tuple[int, float, str]:
        if value == DEFAULT:
            return 0, 0.0, ""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return (1, float(value), "") if is_number else (2, 0.0, str(value))

    texts = {str(value): value for value in values.values()}
    ordered = sorted(texts, key=lambda text: rank(texts[text]))
    heights = {text: place / (len(ordered) - 1) for place, text in enumerate(ordered)}
    every = -(-len(ordered) // _TICKS)
    ticks = [(heights[text], _short(text)) for text in ordered[::every]]
    return Axis(name, {n: heights[str(value)] for n, value in values.items()}, ticks)


def _figure_axes(rows: Mapping[int, Row], latency: str) -> list[Axis]:
    made = []
    for metric in (THROUGHPUT, latency, "quality"):
        values = {number: float(row[metric]) for number, row in rows.items() if metric in row}
        if values:
            made.append(_figure_axis(metric, values, rows))
    return made


def _figure_axis(metric: str, values: Mapping[int, float], rows: Mapping[int, Row]) -> Axis:
    """From the lowest to the highest; of a latency the lowest stands on top, as it is best."""
    low, high = min(values.values()), max(values.values())
    width = (high - low) or 1.0
    lower_is_better = metric.endswith("_ms")

    def height(value: float) -> float:
        up = (value - low) / width if high > low else 0.5
        return 1.0 - up if lower_is_better else up

    marks = [low + width * step / 4 for step in range(5)] if high > low else [low]
    title = metric_label(metric, rows.values()) if metric == "quality" else METRIC_LABELS[metric]
    return Axis(
        title,
        {number: height(value) for number, value in values.items()},
        [(height(mark), number_text(mark)) for mark in marks],
    )


def _rows_by_trial(frame: Any, recommendation: Recommendation | None) -> dict[int, Row]:
    """The point that stands for each trial that worked."""
    rows = [row_dict(row) for row in selectable(frame).to_dict("records")] if len(frame) else []
    levels = [row["level"] for row in rows]
    usual = max(levels, key=levels.count, default="") if recommendation is None else None
    level = usual if recommendation is None else recommendation.level
    found: dict[int, Row] = {}
    for row in sorted(rows, key=lambda row: row.get(THROUGHPUT, 0.0)):
        known = found.get(row["trial"])
        if known is None or known["level"] != level:
            found[row["trial"]] = row
    return found


_Look = tuple[str, str, str, float]


def _groups(
    trials: Mapping[int, TrialOutcome],
    frame: Any,
    rows: Mapping[int, Row],
    recommendation: Recommendation | None,
) -> list[tuple[_Look, list[int]]]:
    """((name, colour, dash, width), trials) of what is drawn alike."""
    front = {int(n) for n in frame["trial"][front_mask(frame)]} if len(frame) else set()
    chosen = None if recommendation is None else recommendation.trial
    found: dict[str, list[int]] = {}
    for number, outcome in trials.items():
        kind = "other" if outcome.verdict is Verdict.OK else "failed"
        kind = "front" if number in front else kind
        kind = "baseline" if outcome.kind == BASELINE else kind
        found.setdefault("chosen" if number == chosen else kind, []).append(number)
    looks: dict[str, _Look] = {
        "failed": ("failed or refused", VERMILLION, "dot", 1.0),
        "other": ("worked, or was cut short", GREY, "solid", 1.0),
        "front": ("on the front", BLUE, "solid", 1.8),
        "baseline": ("engine defaults", VERMILLION, "dash", 2.5),
        "chosen": ("recommended", GREEN, "solid", 3.5),
    }
    return [(look, found[kind]) for kind, look in looks.items() if kind in found]


def _lines(
    numbers: Sequence[int],
    trials: Mapping[int, TrialOutcome],
    rows: Mapping[int, Row],
    axes: Sequence[Axis],
    look: _Look,
) -> Any:
    """One trace for a whole group, its lines parted by gaps."""
    name, colour, dash, width = look
    x: list[int | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    for number in numbers:
        told = _words(trials[number], rows.get(number))
        for place, axis in enumerate(axes):
            x.append(place)
            y.append(axis.places.get(number))
            texts.append(told)
        x.append(None)
        y.append(None)
        texts.append("")
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "name": name,
        "mode": "lines" if len(x) > _MOST_MARKS else "lines+markers",
        "connectgaps": False,
        "opacity": 0.55 if colour == GREY or dash == "dot" else 1.0,
        "line": {"color": colour, "dash": dash, "width": width},
        "marker": {"size": 5, "symbol": "x" if name.startswith("failed") else "circle"},
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _words(outcome: TrialOutcome, row: Row | None) -> str:
    lines = [f"trial {outcome.number} ({outcome.kind}): {outcome.verdict}"]
    if row is None:
        lines.append(outcome.partial or f"{outcome.phase}: {outcome.cause}")
    else:
        figures = (THROUGHPUT, "e2e_p95_ms", "ttft_p95_ms", "tpot_p95_ms")
        told = [f"{METRIC_LABELS[m]} {number_text(row[m])}" for m in figures if m in row]
        lines.append(f"at {row['level']}: {', '.join(told)}")
    return hover([*lines, deployment_text(outcome.deployment)])


def _short(text: str, most: int = 18) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _broken(title: str) -> list[str]:
    """A long name over several lines, broken where words end."""
    import textwrap

    spaced = title.replace("_", "_\u200b").replace(".", ".\u200b").replace(" ", " \u200b")
    words, lines = spaced.split("\u200b"), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > 14:
            lines.append("")
        lines[-1] += word
    return [clean(part) for line in lines for part in textwrap.wrap(line.strip(), 18)]
