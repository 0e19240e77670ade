from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import LoadConfig
from sweeper.search.priors.prior import Prediction
from sweeper.search.priors.roofline import RooflinePrior, make
from tests.search.priors.made import H200, config, setup


def predict(
    tmp_path: Path, *deployments: Mapping[str, Any], load: LoadConfig | None = None
) -> list[Prediction | None]:
    cfg = config()
    cfg.load = load or LoadConfig(concurrency=[1, 64])
    cfg.workload.input_tokens, cfg.workload.output_tokens = 1024, 256
    prior = make(setup(tmp_path, cfg), print)
    assert isinstance(prior, RooflinePrior)
    return prior.predict(deployments)


def figures(prediction: Prediction | None, level: int) -> Mapping[str, float]:
    assert prediction is not None
    return prediction.points[level].metrics


def test_one_stream_is_predicted_as_it_is_known_to_be(tmp_path: Path) -> None:
    """A 7B in 16 bits on an H200 decodes a token in about 4.6 ms, alone."""
    (plain,) = predict(tmp_path, {})
    found = figures(plain, 0)
    assert found["tpot_p95_ms"] == pytest.approx(4.6, rel=0.25)
    e2e_s = found["e2e_p95_ms"] / 1e3
    assert found["output_tokens_per_s"] == pytest.approx(256 / e2e_s)


def test_eight_bit_weights_and_more_devices_are_faster_but_not_as_much_as_they_read_less(
    tmp_path: Path,
) -> None:
    plain, fp8, two = predict(
        tmp_path, {}, {"quantization": "fp8_per_tensor"}, {"tensor_parallel_size": 2}
    )
    base = figures(plain, 0)["tpot_p95_ms"]
    for faster in (fp8, two):
        assert 0.5 * base < figures(faster, 0)["tpot_p95_ms"] < 0.9 * base
    per_gpu = "output_tokens_per_s_per_gpu"
    assert figures(two, 1)[per_gpu] < figures(plain, 1)[per_gpu]


def test_what_the_scheduler_does_not_admit_waits(tmp_path: Path) -> None:
    plain, few = predict(tmp_path, {}, {"max_num_seqs": 8})
    assert figures(few, 1)["output_tokens_per_s"] < figures(plain, 1)["output_tokens_per_s"]
    assert figures(few, 1)["ttft_p95_ms"] > 10 * figures(plain, 1)["ttft_p95_ms"]
    in_flight = figures(few, 1)["requests_per_s"] * figures(few, 1)["e2e_p95_ms"] / 1e3
    assert in_flight == pytest.approx(64), "Little's law"


def test_a_small_kv_cache_holds_fewer(tmp_path: Path) -> None:
    roomy, tight = predict(tmp_path, {}, {"gpu_memory_utilization": 0.15})
    assert figures(tight, 1)["output_tokens_per_s"] < figures(roomy, 1)["output_tokens_per_s"]


def test_speculative_decoding_is_promised_no_gain(tmp_path: Path) -> None:
    plain, drafting = predict(tmp_path, {}, {"speculative": "ngram", "num_speculative_tokens": 3})
    assert drafting == plain


def test_what_it_does_not_count_does_not_tell_deployments_apart(tmp_path: Path) -> None:
    plain, eager, batched = predict(
        tmp_path, {}, {"enforce_eager": True}, {"max_num_batched_tokens": 2048}
    )
    assert plain == eager == batched


def test_a_rate_beyond_what_can_be_served_has_no_steady_state(tmp_path: Path) -> None:
    load = LoadConfig(kind="open", concurrency=[], rate_per_s=[1.0, 1e5])
    (plain,) = predict(tmp_path, {}, load=load)
    assert plain is not None and len(plain.points) == 1
    assert plain.points[0].load["rate_per_s"] == 1.0
    assert plain.points[0].metrics["requests_per_s"] == pytest.approx(1.0)
    load.rate_per_s = [20.0]
    (plenty, few) = predict(tmp_path, {}, {"max_num_seqs": 8}, load=load)
    assert plenty is not None
    assert few is None, "more arrive than may run at once"


def test_where_facts_are_missing_it_says_which(tmp_path: Path) -> None:
    unknown = replace(H200, bandwidth_gbs=None)
    told = make(setup(tmp_path, hardware=unknown), print)
    assert isinstance(told, str) and "bandwidth" in told
    cfg = config()
    cfg.load = LoadConfig(kind="ramp", rate_per_s=[4.0])
    assert "steady state" in str(make(setup(tmp_path, cfg), print))
    made = setup(tmp_path)
    shapeless = replace(made, model=replace(made.model, facts=None))
    assert "shape" in str(make(shapeless, print))
