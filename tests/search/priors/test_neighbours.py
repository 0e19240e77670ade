from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.search.priors.neighbours import Neighbours
from sweeper.search.priors.prior import PredictedPoint, Prediction

LOAD = {"kind": "closed", "concurrency": 8}


def told(throughput: float, **more: float) -> Prediction:
    return Prediction((PredictedPoint(LOAD, {"output_tokens_per_s": throughput, **more}),))


def figure(prediction: Prediction | None) -> float:
    assert prediction is not None
    return prediction.points[0].metrics["output_tokens_per_s"]


def test_what_is_known_is_its_own_answer() -> None:
    known: list[tuple[dict[str, Any], Prediction]] = [
        ({"max_num_seqs": 8}, told(10)),
        ({"max_num_seqs": 64}, told(20)),
    ]
    answers = Neighbours(known).predict([one for one, _ in known])
    assert answers == [prediction for _, prediction in known]


def test_what_lies_between_is_inferred_and_marked() -> None:
    known = [({"max_num_seqs": n}, told(value)) for n, value in ((8, 10.0), (32, 40.0))]
    (answer,) = Neighbours(known).predict([{"max_num_seqs": 16}])
    assert answer is not None and answer.inferred
    assert figure(answer) == pytest.approx(20.0), "half the way in logarithms of both"


def test_the_nearest_counts_most() -> None:
    known = [
        ({"max_num_seqs": 8, "quantization": "fp8"}, told(10.0)),
        ({"max_num_seqs": 16, "quantization": "fp8"}, told(10.0)),
        ({"max_num_seqs": 8, "quantization": "none"}, told(100.0)),
    ]
    (answer,) = Neighbours(known).predict([{"max_num_seqs": 16, "quantization": "none"}])
    assert 10.0 < figure(answer) < 100.0


def test_far_off_nothing_is_inferred() -> None:
    known = [({"quantization": "a", "kv_cache_dtype": "b", "enforce_eager": True}, told(1.0))]
    (answer,) = Neighbours(known).predict([{}])
    assert answer is None


def test_the_same_deployment_measured_twice_gives_the_mean() -> None:
    known = [({"max_num_seqs": 8}, told(10.0)), ({"max_num_seqs": 8}, told(40.0))]
    (answer,) = Neighbours(known).predict([{"max_num_seqs": 8}])
    assert answer is not None and not answer.inferred
    assert figure(answer) == pytest.approx(20.0)


def test_only_names_that_count_tell_deployments_apart() -> None:
    known = [({"max_num_seqs": 8, "block_size": 32}, told(10.0))]
    (answer,) = Neighbours(known, ["max_num_seqs"]).predict([{"max_num_seqs": 8}])
    assert answer == known[0][1]


def test_a_default_is_where_a_deployment_says_nothing() -> None:
    known = [({}, told(10.0)), ({"max_num_seqs": 8}, told(80.0))]
    (answer,) = Neighbours(known, defaults={"max_num_seqs": 64}).predict([{"max_num_seqs": 64}])
    assert answer == known[0][1]


def test_true_is_not_one_and_a_metric_that_some_lack_is_that_of_the_others() -> None:
    first: dict[str, Any] = {"a": True}
    known = [(first, told(10.0, ttft_p95_ms=5.0)), ({"a": 1}, told(20.0))]
    (same,) = Neighbours(known).predict([{"a": 1}])
    assert same == known[1][1]
    (between,) = Neighbours(known).predict([{"a": "x"}])
    assert between is not None
    assert between.points[0].metrics["ttft_p95_ms"] == pytest.approx(5.0)


@settings(max_examples=40)
@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=8), st.integers(1, 512))
def test_an_inferred_figure_lies_between_the_known_ones(values: list[float], seqs: int) -> None:
    known = [({"max_num_seqs": 2**n}, told(value)) for n, value in enumerate(values)]
    (answer,) = Neighbours(known).predict([{"max_num_seqs": seqs}])
    found = figure(answer)
    assert math.isfinite(found)
    assert min(values) * (1 - 1e-9) <= found <= max(values) * (1 + 1e-9)
