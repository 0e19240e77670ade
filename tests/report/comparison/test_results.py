from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.report.comparison.results import (
    SINGLE,
    SYSTEM,
    Judgement,
    Metric,
    Result,
    compare_levels,
    judge,
    ratio_interval,
)
from sweeper.report.comparison.side import Side
from tests.report.comparison.sides import manifest, point, trial

LESS, MORE = Metric("t_ms", "t", "g"), Metric("x_per_s", "x", "g", True)
positive = st.floats(1e-3, 1e6)


def interval(low: float, high: float) -> list[float]:
    return sorted([low, high])


def results(a: Side, b: Side, level: str = "concurrency 8") -> dict[str, Result]:
    (found,) = compare_levels(a, b, [level])
    return {result.metric.name: result for result in found.results}


def test_a_lower_latency_is_better() -> None:
    a, b = trial(), trial(points=[point(ttft_p95_ms=88.0)])
    result = results(a, b)["ttft_p95_ms"]
    assert result.ratio == pytest.approx(0.88)
    assert result.judgement is Judgement.BETTER
    # Both intervals are ± 2 %: from 0.88 * 0.98 / 1.02 to 0.88 * 1.02 / 0.98.
    assert result.ratio_interval == pytest.approx([0.8455, 0.9159], abs=1e-4)
    assert result.word == "b better by 12 % [8.4, 15]"


def test_a_lower_throughput_is_worse() -> None:
    result = results(trial(), trial(points=[point(throughput=88.0)]))["output_tokens_per_s"]
    assert result.judgement is Judgement.WORSE
    assert result.word == "b worse by 12 % [8.4, 15]"


def test_intervals_that_meet_allow_no_difference() -> None:
    result = results(trial(), trial(points=[point(throughput=103.0)]))["output_tokens_per_s"]
    assert result.judgement is Judgement.NO_DIFFERENCE
    assert result.word == "no difference that the intervals allow [-1.0, +7.2] %"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"low_confidence": ["ttft_p95_ms"], "n": 20}, "n too small: b n=20"),
        ({"intervals": {}}, "no interval on b"),
        ({"valid": False, "reasons": ["half failed"]}, "b is not valid"),
        ({"metrics": {}}, "b does not have it"),
    ],
)
def test_what_cannot_be_told_says_why(change: dict[str, Any], said: str) -> None:
    b = trial(points=[replace(point(ttft_p95_ms=10.0), **change)])
    result = results(trial(), b)["ttft_p95_ms"]
    assert result.judgement is Judgement.CANNOT_TELL
    assert result.word == f"cannot tell ({said})"


def test_faults_of_a_level_are_carried_along() -> None:
    bad = replace(point(), valid=False, reasons=["half failed"])
    (level,) = compare_levels(trial(), trial(points=[bad]), ["concurrency 8"])
    assert level.faults == ("b: half failed",)


def test_single_stream_and_system_throughput_are_told_apart() -> None:
    one = point(1, single_stream_tokens_per_s=50.0)
    (single,) = compare_levels(trial(points=[one]), trial(points=[one]), ["concurrency 1"])
    (system,) = compare_levels(trial(), trial(), ["concurrency 8"])
    groups = [{r.metric.group for r in level.results} for level in (single, system)]
    assert SINGLE in groups[0]
    assert SYSTEM not in groups[0]
    assert SYSTEM in groups[1]
    assert SINGLE not in groups[1]
    assert single.single_stream
    assert not system.single_stream


def test_throughput_by_device_is_left_out_where_there_is_one_device() -> None:
    two = point(output_tokens_per_s_per_gpu=50.0)
    assert "output_tokens_per_s_per_gpu" not in results(trial(), trial())
    assert "output_tokens_per_s_per_gpu" in results(trial(), trial(points=[two]))


def test_itl_is_never_compared() -> None:
    a = trial(points=[point(itl_p50_ms=1.0)])
    assert not any("itl" in name for name in results(a, a))


def test_goodput_is_only_compared_under_the_same_limits() -> None:
    limits = manifest(load={"goodput": {"ttft_ms": 200.0, "share": 0.99}})
    a = trial(points=[point(goodput_share=1.0)], told=limits)
    assert "goodput_share" in results(a, a)
    other = manifest(load={"goodput": {"ttft_ms": 100.0}})
    assert "goodput_share" not in results(a, trial(points=[point(goodput_share=1.0)], told=other))


@given(st.tuples(*[positive] * 4), st.floats(0, 1), st.floats(0, 1))
def test_the_ratio_is_inside_its_interval(
    ends: tuple[float, float, float, float], u: float, v: float
) -> None:
    a, b = interval(*ends[:2]), interval(*ends[2:])
    found = ratio_interval(a, b)
    assert found is not None
    x, y = a[0] + u * (a[1] - a[0]), b[0] + v * (b[1] - b[0])
    assert found[0] * (1 - 1e-9) <= y / x <= found[1] * (1 + 1e-9)
    # In logarithms the distances add up.
    width = math.log(found[1] / found[0])
    assert width == pytest.approx(math.log(a[1] / a[0]) + math.log(b[1] / b[0]), abs=1e-9)


@given(positive, positive, positive, positive)
def test_exchanging_the_sides_exchanges_the_judgement(
    a1: float, a2: float, b1: float, b2: float
) -> None:
    a, b = interval(a1, a2), interval(b1, b2)
    mid_a, mid_b = math.sqrt(a[0] * a[1]), math.sqrt(b[0] * b[1])
    there, _ = judge(LESS, mid_b / mid_a, ratio_interval(a, b))
    back, _ = judge(LESS, mid_a / mid_b, ratio_interval(b, a))
    opposite = {Judgement.BETTER: Judgement.WORSE, Judgement.WORSE: Judgement.BETTER}
    assert back is opposite.get(there, there)
    other_way, _ = judge(MORE, mid_b / mid_a, ratio_interval(a, b))
    assert other_way is opposite.get(there, there)


def test_an_interval_that_reaches_zero_gives_no_ratio() -> None:
    assert ratio_interval([0.0, 1.0], [1.0, 2.0]) is None
    assert ratio_interval(None, [1.0, 2.0]) is None
