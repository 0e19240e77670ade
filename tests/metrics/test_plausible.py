"""What cannot be true is found, named and kept out of every figure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.records import LevelRun
from sweeper.metrics.figures import figures
from sweeper.metrics.plausible import fault, sort_out
from sweeper.metrics.summary import summarise
from sweeper.metrics.window import Repeat, choose_window
from tests.metrics.synthetic import batch, by_the_clock, level

ANY = st.floats(allow_nan=True, allow_infinity=True)


def with_first(run: LevelRun, **changes: Any) -> LevelRun:
    return replace(run, records=(replace(run.records[0], **changes), *run.records[1:]))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"first_token_s": None}, "no first token"),
        ({"first_token_s": -1.0}, "a time before the level began"),
        ({"first_token_s": 0.0}, "a first token before it was sent"),
        ({"first_token_s": 0.4}, "an end before its first token"),
        ({"first_token_s": math.nan}, "a time that is no number"),
        ({"finished_s": math.inf}, "a time that is no number"),
        ({"sent_s": -1.7e9}, "a time before the level began"),
        ({"scheduled_s": 5.0}, "sending before it was due"),
        ({"first_token_s": 900.0, "finished_s": 901.0}, "an end after that of the level"),
        ({"prompt_tokens": None}, "no token counts"),
        ({"output_tokens": 0}, "token counts that are not positive"),
        ({"prompt_tokens": -64}, "token counts that are not positive"),
        ({"output_tokens": 12}, "more output tokens than its limit"),
    ],
)
def test_each_absurd_record_is_named_and_left_out(changes: dict[str, Any], word: str) -> None:
    run = with_first(level(), **changes)
    assert fault(run.records[0], run, 1.6) == word
    summary = summarise([run], device_count=1)
    assert not summary.valid and summary.n == 19
    assert any(word in reason for reason in summary.reasons)
    assert summary.metrics["ttft_p99_ms"] == pytest.approx(100.0)
    assert summary.metrics["e2e_mean_ms"] == pytest.approx(300.0)


@given(ANY, ANY, ANY, ANY)
def test_whatever_the_clock_says_no_figure_is_absurd(
    scheduled: float, sent: float, first: float, end: float
) -> None:
    run = with_first(
        level(),
        scheduled_s=scheduled,
        sent_s=sent,
        first_token_s=first,
        finished_s=end,
    )
    ok = sort_out(run).believed
    metrics, _ = figures([run], [Repeat(run, ok, choose_window(run, ok))], 1)
    for name, value in metrics.items():
        assert math.isfinite(value) and value >= 0, name
    assert metrics["ttft_p99_ms"] <= metrics["e2e_p99_ms"] <= 2000.0


def test_only_a_batch_may_be_without_first_tokens() -> None:
    assert sort_out(batch()).faults == {}
    assert len(sort_out(batch()).believed) == 20


def test_a_level_counts_from_its_first_request() -> None:
    late = by_the_clock(arrivals_s=[100.0 + k / 10 for k in range(50)])
    assert sort_out(late).faults == {}


def test_a_timer_may_be_a_little_early() -> None:
    run = by_the_clock()
    early = tuple(replace(r, sent_s=max(0.0, r.sent_s - 0.001)) for r in run.records)
    assert sort_out(replace(run, records=early)).faults == {}
