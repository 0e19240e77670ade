"""The real simulator in its own environment: it reacts as its users rely on, and its refusals are
read as they are worded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from sweeper.estimate.simulator.answer import SimulatorAnswer
from sweeper.estimate.simulator.ask import WITH_GAPS
from sweeper.estimate.simulator.client import Simulator
from sweeper.estimate.simulator.systems import SYSTEMS
from sweeper.verdicts import Diagnosis, Verdict
from tests.estimate.simulator.conftest import ask

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    with Simulator(tmp_path_factory.mktemp("simulator") / "log") as made:
        made.open()
        yield made


def rate(simulator: Simulator, parameters: dict[str, Any] | None = None, **changes: Any) -> float:
    found = simulator.predict(ask(parameters, **changes))
    assert isinstance(found, SimulatorAnswer), found
    assert found.tables and found.learnt["kv_cache_tokens"] > 0
    return found.metrics["output_tokens_per_s"]


def test_it_reacts_to_what_is_searched(simulator: Simulator) -> None:
    full = {"concurrency": 128, "requests": 256}
    plain = rate(simulator, **full)
    assert rate(simulator, {"quantization": "fp8_per_tensor"}, **full) > 1.1 * plain
    assert rate(simulator, {"tensor_parallel_size": 2}, **full) > 1.2 * plain
    assert rate(simulator, {"data_parallel_size": 2}, **full) > 1.2 * plain
    assert rate(simulator, {"max_num_seqs": 16}, **full) < 0.6 * plain
    assert rate(simulator, {"gpu_memory_utilization": 0.14}, **full) < plain
    assert rate(simulator, hardware="h100_80gb", **full) < plain
    drafting = {"speculative": "ngram", "num_speculative_tokens": 3}
    alone = {"concurrency": 1, "requests": 8}
    assert rate(simulator, drafting, ngram_acceptance=0.6, **alone) > rate(simulator, **alone)


def test_it_knows_arrivals_and_prefixes(simulator: Simulator) -> None:
    by_clock = {"concurrency": None, "rate_per_s": 2.0, "requests": 60}
    for constant in (False, True):
        found = simulator.predict(ask(constant=constant, **by_clock))
        assert isinstance(found, SimulatorAnswer)
        assert found.metrics["requests_per_s"] == pytest.approx(2.0, rel=0.3)
    alone = {"input_tokens": 2048, "concurrency": 1}
    cold, warm = (simulator.predict(ask(prefix_tokens=n, **alone)) for n in (0, 1024))
    assert isinstance(cold, SimulatorAnswer) and isinstance(warm, SimulatorAnswer)
    assert warm.metrics["ttft_mean_ms"] < 0.8 * cold.metrics["ttft_mean_ms"]


@pytest.mark.parametrize(
    ("parameters", "verdict", "rule"),
    [
        ({"gpu_memory_utilization": 0.12}, Verdict.CAPACITY, "simulated_memory"),
        ({"tensor_parallel_size": 8}, Verdict.INFEASIBLE_CONFIG, "simulated_heads"),
        ({"quantization": "awq"}, Verdict.UNKNOWN, "simulated_gap"),
    ],
)
def test_its_refusals_are_understood(
    simulator: Simulator, parameters: dict[str, Any], verdict: Verdict, rule: str
) -> None:
    found = simulator.predict(ask(parameters))
    assert isinstance(found, Diagnosis)
    assert (found.verdict, found.learnt["rule"]) == (verdict, rule), found.evidence


def test_estimates_fill_what_was_never_timed(simulator: Simulator) -> None:
    assert rate(simulator, {"quantization": "awq"}, tables=WITH_GAPS) > 0


def test_every_gpu_that_is_offered_has_tables(simulator: Simulator) -> None:
    for system in SYSTEMS:
        assert rate(simulator, hardware=system.known_as, requests=8) > 0, system.name


def test_a_warm_prediction_takes_a_moment(simulator: Simulator) -> None:
    rate(simulator)
    begun = time.monotonic()
    for streams in range(1, 6):
        rate(simulator, concurrency=streams)
    assert time.monotonic() - begun < 5 * 5.0
