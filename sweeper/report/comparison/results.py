"""Results of two sides at the load levels both have, and what the intervals allow to say. Pure.

The interval of a ratio b / a comes from the intervals of both: from the lowest b over the highest a
to the highest b over the lowest a. In logarithms the two distances are added instead of their
squares, so it is wider than it need be for independent measurements (about 99 % where each of the
two is 95 % and they are equally wide). That is on purpose: a bootstrap over the requests of one
launch knows nothing of how another launch of the same deployment would differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sweeper.load.level import CLOSED
from sweeper.report.comparison.side import Level, Side

SINGLE, SYSTEM = "single-stream speed", "system throughput"


class Judgement(StrEnum):
    BETTER = "b better"
    WORSE = "b worse"
    NO_DIFFERENCE = "no difference"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Metric:
    """A figure that is compared: its name, its label, its group, and which way is better."""

    name: str
    label: str
    group: str
    more_is_better: bool = False


_LATENCIES = tuple(
    Metric(f"{name}_p{percent}_ms", f"{group}{name.upper()} P{percent} ms", group.strip(": "))
    for name, group in (("ttft", "prefill: "), ("tpot", "decode: "), ("e2e", ""))
    for percent in (50, 95)
)
_SYSTEM = (
    Metric("output_tokens_per_s", "system output tokens/s", SYSTEM, True),
    Metric("output_tokens_per_s_per_gpu", "  per device", SYSTEM, True),
    Metric("output_tokens_per_s_per_user", "  per user", SYSTEM, True),
)
_SINGLE = (
    Metric("single_stream_tokens_per_s", "single-stream tokens/s", SINGLE, True),
    Metric("single_stream_prefill_tokens_per_s", "  prefill tokens/s", SINGLE, True),
    Metric("single_stream_decode_tokens_per_s", "  decode tokens/s", SINGLE, True),
    Metric("output_tokens_per_s", "  pauses counted in", SINGLE, True),
)
_GOODPUT = (
    Metric("goodput_share", "share within the limits", "goodput", True),
    Metric("goodput_requests_per_s", "good requests/s", "goodput", True),
    Metric("goodput_tokens_per_s", "good output tokens/s", "goodput", True),
)
_PER_DEVICE = "output_tokens_per_s_per_gpu"


@dataclass(frozen=True)
class Result:
    """One metric at one level.

    Attributes:
        metric: which.
        a, b: values, None where a side lacks it.
        a_interval, b_interval: 95 %, None where there is none.
        ratio: b / a, None without both.
        ratio_interval: see the head of this module.
        judgement: what may be said.
        word: the same in words.
        change, change_interval: b - a with its 95 % interval, of what is compared by difference.
    """

    metric: Metric
    a: float | None
    b: float | None
    a_interval: list[float] | None
    b_interval: list[float] | None
    ratio: float | None
    ratio_interval: list[float] | None
    judgement: Judgement
    word: str
    change: float | None = None
    change_interval: list[float] | None = None


@dataclass(frozen=True)
class LevelResults:
    """A load level that both sides have."""

    name: str
    a_n: int | None
    b_n: int | None
    results: tuple[Result, ...]
    faults: tuple[str, ...] = field(default=())

    @property
    def single_stream(self) -> bool:
        """True if its throughput is the speed of one request at a time, not the system's."""
        return any(result.metric.group == SINGLE for result in self.results)


def compare_levels(a: Side, b: Side, names: Sequence[str]) -> list[LevelResults]:
    """Results at the named levels, which both sides have."""
    left = {level.name: level for level in a.levels}
    right = {level.name: level for level in b.levels}
    limits = a.conditions.get("goodput_limits")
    goodput = _GOODPUT if limits and limits == b.conditions.get("goodput_limits") else ()
    return [_level(left[name], right[name], goodput) for name in names]


def _level(a: Level, b: Level, goodput: tuple[Metric, ...]) -> LevelResults:
    single = a.kind == CLOSED and a.concurrency == 1
    throughputs = _SINGLE if single else _SYSTEM
    found = [_result(metric, a, b) for metric in (*_LATENCIES, *throughputs, *goodput)]
    faults = [f"{who}: {reason}" for who, side in (("a", a), ("b", b)) for reason in side.reasons]
    results = tuple(
        r for r in found if (r.a is not None or r.b is not None) and not _is_copy(r, a, b)
    )
    return LevelResults(a.name, a.n, b.n, results, tuple(faults))


def _is_copy(result: Result, a: Level, b: Level) -> bool:
    """True of throughput by device where each side has one device: it says nothing new."""
    total = [level.metrics.get("output_tokens_per_s") for level in (a, b)]
    return result.metric.name == _PER_DEVICE and [result.a, result.b] == total


def _result(metric: Metric, a: Level, b: Level) -> Result:
    left, right = a.metrics.get(metric.name), b.metrics.get(metric.name)
    ours, theirs = a.intervals.get(metric.name), b.intervals.get(metric.name)
    ratio = right / left if left and right is not None else None
    interval = None if ratio is None else ratio_interval(ours, theirs)
    obstacle = _obstacle(metric, a, b)
    if obstacle is not None:
        judgement, word = Judgement.CANNOT_TELL, f"cannot tell ({obstacle})"
    else:
        judgement, word = judge(metric, ratio, interval)
    return Result(metric, left, right, ours, theirs, ratio, interval, judgement, word)


def ratio_interval(a: list[float] | None, b: list[float] | None) -> list[float] | None:
    """Interval of b / a, see the head of this module; None if a side has none or reaches 0."""
    if a is None or b is None or min(*a, *b) <= 0:
        return None
    return [b[0] / a[1], b[1] / a[0]]


def judge(
    metric: Metric, ratio: float | None, interval: list[float] | None
) -> tuple[Judgement, str]:
    """What a ratio b / a and its interval allow to say."""
    if ratio is None or interval is None:
        return Judgement.CANNOT_TELL, "cannot tell (no interval)"
    low, high = interval
    if low <= 1.0 <= high:
        return (
            Judgement.NO_DIFFERENCE,
            f"no difference that the intervals allow [{_signed(low)}, {_signed(high)}] %",
        )
    better = (ratio > 1.0) == metric.more_is_better
    # Both ends lie on one side of 1, and so do their distances.
    ends = sorted(abs(bound - 1.0) * 100 for bound in interval)
    size = abs(ratio - 1.0) * 100
    text = f"{_percent(size)} % [{_percent(ends[0])}, {_percent(ends[1])}]"
    judgement = Judgement.BETTER if better else Judgement.WORSE
    return judgement, f"{judgement} by {text}"


def _percent(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def _signed(bound: float) -> str:
    value = (bound - 1.0) * 100
    return f"{value:+.1f}" if abs(value) < 9.95 else f"{value:+.0f}"


def _obstacle(metric: Metric, a: Level, b: Level) -> str | None:
    """Why nothing can be said, None if something can."""
    for name, level in (("a", a), ("b", b)):
        if metric.name not in level.metrics:
            return f"{name} does not have it"
    for name, level in (("a", a), ("b", b)):
        if not level.valid:
            return f"{name} is not valid"
    few = [
        f"{name} n={'?' if level.n is None else level.n}"
        for name, level in (("a", a), ("b", b))
        if metric.name in level.low_confidence
    ]
    if few:
        return f"n too small: {', '.join(few)}"
    without = [name for name, level in (("a", a), ("b", b)) if metric.name not in level.intervals]
    return f"no interval on {' and '.join(without)}" if without else None
