"""When each launch ran and how it ended, on the study's own clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sweeper.pareto.select import THROUGHPUT
from sweeper.report.plots.style import (
    BLUE,
    GREY,
    NUMBERS,
    SERIES,
    VERMILLION,
    as_figure,
    drawing,
    hover,
)
from sweeper.report.words import deployment_text, number, seconds
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.run import REAL
from sweeper.verdicts import Verdict

_COLOURS = {
    Verdict.OK: BLUE,
    Verdict.CAPACITY: VERMILLION,
    Verdict.INFEASIBLE_CONFIG: GREY,
    Verdict.CRASH_UNDER_LOAD: SERIES[5],
    Verdict.QUALITY_FAIL: SERIES[2],
    Verdict.MEASUREMENT_INVALID: SERIES[1],
    Verdict.INFRA: SERIES[4],
    Verdict.STARTUP_TIMEOUT: SERIES[3],
    Verdict.UNKNOWN: SERIES[6],
}
CUT, AGAIN = "cut short", "launched again"
_REFUSED = "refused, not launched"


@dataclass(frozen=True)
class Span:
    """One attempt on the study's clock.

    Attributes:
        outcome: of the attempt.
        start_s, end_s: seconds since the first began; the same for what was not launched.
    """

    outcome: TrialOutcome
    start_s: float
    end_s: float


def is_virtual(outcomes: Iterable[TrialOutcome]) -> bool:
    """Whether the study's clock is an engine's own: replayed or simulated time."""
    return any(REAL in outcome.timings_s for outcome in outcomes)


def spans(outcomes: Sequence[TrialOutcome]) -> list[Span]:
    """Every attempt on one clock, which stands still while nothing runs.

    So the days between two runs of a study take no room. Launches that ran side by side overlap.
    Virtual time has no dates: there one attempt follows the other.
    """
    if is_virtual(outcomes):
        return _one_after_the_other(outcomes)
    begun = [_time(outcome) for outcome in outcomes]
    known = [time for time in begun if time is not None]
    if len(known) < len(begun):
        return _one_after_the_other(outcomes)
    ordered = sorted(zip(known, outcomes, strict=True), key=lambda pair: pair[0])
    found: list[Span] = []
    first_s = busy_until_s = min(known, default=0.0)
    idle_s = 0.0
    for time_s, outcome in ordered:
        idle_s += max(0.0, time_s - busy_until_s)
        end_s = time_s + _total(outcome)
        busy_until_s = max(busy_until_s, end_s)
        found.append(Span(outcome, time_s - first_s - idle_s, end_s - first_s - idle_s))
    return found


def figure(outcomes: Sequence[TrialOutcome]) -> Any:
    """`draw` as a `plotly.graph_objects.Figure`."""
    return as_figure(draw(outcomes))


def draw(outcomes: Sequence[TrialOutcome]) -> dict[str, Any] | None:
    """A bar an attempt, a lane a verdict, below the best throughput so far.

    Args:
        outcomes: every attempt, repeats and retries too.

    Returns:
        Data and layout of plotly; None where nothing was launched.
    """
    found = spans(outcomes)
    if not any(span.end_s > span.start_s for span in found):
        return None
    end_s = max(span.end_s for span in found)
    scale, unit = _unit(end_s)
    lanes: dict[str, list[Span]] = {}
    for span in found:
        lanes.setdefault(_lane(span.outcome), []).append(span)
    best = _best(found)
    above, lane_px = (170, 34 * len(lanes)) if best else (0, 34 * len(lanes))
    share = lane_px / (lane_px + above)
    traces = [_bars(name, ones, scale, len(found)) for name, ones in lanes.items()]
    if best:
        traces.append(_steps(best, scale, end_s))
    clock = "virtual time" if is_virtual(outcomes) else "time of the study, pauses left out"
    return drawing(
        traces,
        130 + lane_px + above,
        showlegend=False,
        bargap=0.25,
        barmode="overlay",
        xaxis={"title": {"text": f"{unit} ({clock})"}, "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "domain": [0, share * 0.94 if best else 1]},
        **({"yaxis2": {**_BEST_AXIS, "domain": [share, 1]}} if best else {}),
    )


_BEST_AXIS = {
    "title": {"text": "best tokens/s<br>per device"},
    "rangemode": "tozero",
    "tickformat": NUMBERS,
}


def _time(outcome: TrialOutcome) -> float | None:
    try:
        return datetime.fromisoformat(outcome.started_at).timestamp()
    except ValueError:
        return None


def _total(outcome: TrialOutcome) -> float:
    return max(0.0, outcome.timings_s.get("total", 0.0))


def _one_after_the_other(outcomes: Sequence[TrialOutcome]) -> list[Span]:
    found, now_s = [], 0.0
    for outcome in outcomes:
        end_s = now_s + _total(outcome)
        found.append(Span(outcome, now_s, end_s))
        now_s = end_s
    return found


def _unit(end_s: float) -> tuple[float, str]:
    """(units a second, name of the unit) that a length is told in."""
    if end_s < 300:
        return 1.0, "seconds"
    return (1 / 60, "minutes") if end_s < 3 * 3600 else (1 / 3600, "hours")


def _lane(outcome: TrialOutcome) -> str:
    if outcome.verdict is Verdict.OK:
        if outcome.partial is not None:
            return f"OK, {CUT}"
        return f"OK, {AGAIN}" if outcome.repeats is not None else "OK"
    return str(outcome.verdict) if outcome.launched else _REFUSED


def _bars(name: str, ones: Sequence[Span], scale: float, count: int) -> Any:
    verdict = ones[0].outcome.verdict
    shape = "/" if name.endswith(CUT) else "x" if name.endswith(AGAIN) else ""
    colour = GREY if name == _REFUSED else _COLOURS[verdict]
    # Launches are parted by a light edge; what took no time is a line of its own colour.
    took_time = any(one.end_s > one.start_s for one in ones)
    edge = "rgba(255,255,255,0.75)" if took_time and not shape else colour
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [name] * len(ones),
        "base": [one.start_s * scale for one in ones],
        "x": [(one.end_s - one.start_s) * scale for one in ones],
        "hovertext": [_words(one) for one in ones],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {
            "color": colour,
            "pattern": {"shape": shape},
            "line": {"width": 1 if count < 300 or not took_time else 0, "color": edge},
        },
    }


def _words(span: Span) -> str:
    outcome = span.outcome
    again = f", launches trial {outcome.repeats} again" if outcome.repeats is not None else ""
    attempt = f", attempt {outcome.attempt}" if outcome.attempt > 1 else ""
    lines = [
        f"trial {outcome.number} ({outcome.kind}{again}{attempt}): {outcome.verdict}",
        f"{seconds(span.end_s - span.start_s)} from {seconds(span.start_s)}",
        deployment_text(outcome.deployment),
    ]
    if outcome.verdict is not Verdict.OK:
        lines.append(f"{outcome.phase}: {outcome.cause}")
        lines += [f"remedy: {outcome.remedy}"] if outcome.remedy else []
    elif outcome.partial is not None:
        lines.append(outcome.partial)
    return hover(lines)


def _peak(outcome: TrialOutcome) -> float | None:
    if outcome.verdict is not Verdict.OK or outcome.repeats is not None:
        return None
    points = outcome.valid_points
    return max((p.metrics[THROUGHPUT] for p in points if THROUGHPUT in p.metrics), default=None)


def _best(found: Sequence[Span]) -> list[tuple[float, float, TrialOutcome]]:
    """(seconds, tokens/s per device, trial) of each launch that beat all before it."""
    steps: list[tuple[float, float, TrialOutcome]] = []
    for span in sorted(found, key=lambda span: span.end_s):
        peak = _peak(span.outcome)
        if peak is not None and (not steps or peak > steps[-1][1]):
            steps.append((span.end_s, peak, span.outcome))
    return steps


def _steps(best: Sequence[tuple[float, float, TrialOutcome]], scale: float, end_s: float) -> Any:
    texts = [
        hover(
            [
                f"trial {outcome.number} ({outcome.kind}): {number(peak)} tokens/s per device",
                f"after {seconds(time_s)}",
                deployment_text(outcome.deployment),
            ]
        )
        for time_s, peak, outcome in best
    ]
    # The last step lasts to the end of the study.
    return {
        "type": "scatter",
        "yaxis": "y2",
        "x": [*(time_s * scale for time_s, _, _ in best), end_s * scale],
        "y": [*(peak for _, peak, _ in best), best[-1][1]],
        "mode": "lines+markers",
        "line": {"shape": "hv", "color": BLUE, "width": 2},
        "marker": {"size": [9] * len(best) + [0]},
        "hovertext": [*texts, texts[-1]],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": "best so far",
    }
