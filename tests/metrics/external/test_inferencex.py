"""Rows of InferenceX; the one in data/ was made for these tests, its numbers are nobody's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeper.metrics.external.inferencex import missing, read

ROW = json.loads((Path(__file__).parent / "data" / "inferencex_row.json").read_text())


def test_seconds_become_milliseconds_and_no_percentile_is_made_up() -> None:
    (level,) = read(ROW).levels
    assert level.name == "concurrency 8"
    assert level.metrics["ttft_p50_ms"] == pytest.approx(480)
    assert level.metrics["tpot_p50_ms"] == pytest.approx(9.2)
    assert level.metrics["e2e_p99_ms"] == pytest.approx(11300)
    assert "ttft_p95_ms" not in level.metrics


def test_throughput_is_by_device_only() -> None:
    (level,) = read(ROW).levels
    assert level.metrics["output_tokens_per_s_per_gpu"] == 130.2
    assert "output_tokens_per_s" not in level.metrics


def test_without_a_count_of_requests_no_percentile_is_sure() -> None:
    (level,) = read(ROW).levels
    assert level.n is None
    assert {"ttft_p50_ms", "ttft_p99_ms"} <= set(level.low_confidence)


def test_conditions_that_the_row_tells() -> None:
    conditions = read(ROW).conditions
    assert conditions["gpu"] == "h200"
    assert conditions["engine"] == "vllm"
    assert conditions["input_tokens_asked"] == 1024
    assert conditions["deployment"] == {"tensor_parallel_size": 8}


def test_what_is_missing_is_named() -> None:
    assert missing(ROW) == []
    assert missing({**ROW, "conc": 8} | {"x": 1}) == []
    assert missing({k: v for k, v in ROW.items() if k != "isl"}) == ["isl"]
