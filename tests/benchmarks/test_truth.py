"""The truth is what was emitted, in windows that are said."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.truth import error_percent, median, truth_of


def request(arrival_s: float, first_s: float, tokens: int, token_s: float = 0.5) -> dict[str, Any]:
    return {
        "arrival_s": arrival_s,
        "due_s": arrival_s + first_s,
        "prompt_tokens": 3,
        "asked": tokens,
        "ended": True,
        "emitted_s": [arrival_s + first_s + at * token_s for at in range(tokens)],
    }


def noted(*requests: dict[str, Any], token_s: float = 0.5) -> dict[str, Any]:
    return {"token_s": token_s, "requests": list(requests)}


def test_two_rounds_of_one_stream() -> None:
    truth = truth_of(noted(request(10.0, 1.0, 5), request(13.0, 1.0, 5)), 2, 1)
    assert truth.tokens == 10
    assert truth.whole_tokens_per_s == pytest.approx(10 / 6.0)  # 10.0 to 16.0
    assert truth.ttft_ms == pytest.approx(1000)
    assert truth.tpot_ms == pytest.approx(500)
    assert truth.late_p99_ms == pytest.approx(0, abs=1e-6)
    # from the first stream's arrival to the first end after the last arrival: all of it
    assert truth.steady_tokens_per_s == pytest.approx(10 / 6.0)


def test_the_steady_state_leaves_out_the_beginning_and_the_end() -> None:
    slow = request(0.0, 1.0, 20)  # tokens from 1.0 to 10.5
    late, last = request(2.0, 1.0, 5), request(5.5, 1.0, 5)  # 3.0 to 5.0 and 6.5 to 8.5
    truth = truth_of(noted(slow, late, last), 3, 2)
    inside = [at for r in (slow, late, last) for at in r["emitted_s"] if 2.0 < at <= 8.5]
    assert truth.steady_tokens_per_s == pytest.approx(len(inside) / 6.5)
    assert truth.steady_tokens_per_s > truth.whole_tokens_per_s


def test_what_came_before_the_measured_requests_is_warm_up() -> None:
    warm = request(0.0, 9.0, 4)
    truth = truth_of(noted(request(20.0, 1.0, 5), warm, request(24.0, 1.0, 5)), 2, 1)
    assert (truth.tokens, truth.all_tokens) == (10, 14)
    assert truth.ttft_ms == pytest.approx(1000)
    assert truth.load_s == pytest.approx(27.0)


def test_a_client_that_counts_more_requests_than_came_is_refused() -> None:
    with pytest.raises(ValueError, match="measured 2"):
        truth_of(noted(request(0.0, 1.0, 5)), 2, 1)


def test_lateness_is_told_and_there_is_none_without_a_beat() -> None:
    late = request(0.0, 1.0, 5)
    late["emitted_s"] = [at + 0.25 for at in late["emitted_s"]]
    assert truth_of(noted(late), 1, 1).late_p99_ms == pytest.approx(250)
    assert truth_of(noted(late, token_s=0), 1, 1).late_p99_ms is None


def test_medians_and_errors() -> None:
    assert (median([3, 1, 2]), median([4, 1, 2, 3])) == (2, 2.5)
    assert error_percent(99, 100) == pytest.approx(-1)
