"""How predictions are held against measured rows."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from benchmarks.simulator_accuracy import Pair, collect, figures, ordered

ROW: dict[str, Any] = {
    "model_path": "meta-llama/Llama-3.1-70B",
    "precision": "fp8",
    "system": "h200_sxm",
    "mode": "agg",
    "isl": 1024,
    "osl": 128,
    "batch_size": 4.0,
    "tp_size": 2.0,
    "pp_size": 1.0,
    "attention_dp_size": float("nan"),
    "moe_tp_size": 1.0,
    "moe_ep_size": 1.0,
    "silicon_data_source": "silicon_concurrency=8; measured=monday",
    "silicon_ttft_ms": 100.0,
    "silicon_tpot_ms": 10.0,
}


def pair(devices: int, measured_ms: float, predicted_ms: float, **changes: Any) -> Pair:
    plain = {"group": "g", "load": (1024, 128, 8), "rows": 1, "ttft_ms": (50.0, 75.0)}
    return Pair(devices=devices, tpot_ms=(measured_ms, predicted_ms), **{**plain, **changes})


def test_one_deployment_measured_on_two_days_is_one_point() -> None:
    rows = pd.DataFrame([ROW, {**ROW, "silicon_ttft_ms": 200.0}, {**ROW, "tp_size": 4.0}])
    found, left_out = collect(rows)
    assert [one.ttft_ms for one in found] == [[100.0, 200.0], [100.0]]
    assert not left_out
    ask = found[0].ask
    assert (ask.concurrency, ask.requests, ask.device_count) == (8, 32, 2)
    assert ask.parameters == {"tensor_parallel_size": 2}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mode": "disagg"}, "servers of their own"),
        ({"model_path": "org/x"}, "no shape known"),
        ({"osl": 100_000}, "too long"),
        ({"moe_tp_size": 2.0, "moe_ep_size": 2.0}, "both ways"),
    ],
)
def test_what_is_left_out_says_why(changes: dict[str, Any], why: str) -> None:
    found, left_out = collect(pd.DataFrame([{**ROW, **changes}]))
    assert not found and why in next(iter(left_out))


def test_an_order_counts_within_one_load_and_where_it_is_one() -> None:
    one, two = pair(1, 10.0, 11.0), pair(2, 6.0, 6.0)
    assert ordered([one, two]) == (1, 1)  # two GPUs are not twice as fast: in both
    assert ordered([one, pair(2, 6.0, 2.0)]) == (0, 1)
    assert ordered([one, pair(1, 10.1, 5.0)]) == (0, 0)  # measured as good as equal
    assert ordered([one, pair(2, 6.0, 5.0, load=(1024, 128, 16))]) == (0, 0)


def test_errors_are_relative_and_bias_has_a_sign() -> None:
    told = figures([pair(1, 10.0, 11.0), pair(2, 20.0, 22.0)])
    assert told["tpot_error"] == pytest.approx(0.1) and told["tpot_bias"] == pytest.approx(1.1)
    assert told["ttft_error"] == pytest.approx(0.5)
    assert "tpot_rank" not in told, "two points have no rank correlation worth a number"
