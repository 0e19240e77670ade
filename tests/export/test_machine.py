from __future__ import annotations

from typing import Any

import pytest

from sweeper.export import machine
from sweeper.export.measured_on import MeasuredOn
from tests.export.conftest import make_source
from tests.factories import outcome, point

CPU = MeasuredOn(version="0.32.0", on_cpu=True, cpu_cores=4, host_memory_gib=23.5)


@pytest.mark.parametrize(
    ("flags", "gpus"),
    [
        ({}, 1),
        ({"tensor_parallel_size": 2}, 2),
        ({"tensor-parallel-size": 2, "pipeline_parallel_size": 3, "data_parallel_size": 4}, 24),
        ({"tensor_parallel_size": None}, 1),
    ],
)
def test_gpus_are_the_product_of_the_sizes(flags: dict[str, Any], gpus: int) -> None:
    source = make_source(flags=flags)
    assert machine.gpu_count(source) == gpus
    assert machine.shm_gib(source) == 2 * gpus


def test_a_cpu_study_asks_for_the_machine_it_had() -> None:
    source = make_source(flags={"tensor_parallel_size": 2}, measured_on=CPU)
    assert machine.gpu_count(source) == 0
    assert (machine.cpu_cores(source), machine.memory_gib(source)) == (4, 23)
    assert machine.shm_gib(source) == 4


@pytest.mark.parametrize(
    ("model", "ready_s", "seconds"),
    [
        ("/data/m", None, 600),
        ("/data/m", 60.0, 600),
        ("/data/m", 400.0, 1600),
        ("org/m", 60.0, 1800),
        ("org/m", 900.0, 3600),
    ],
)
def test_a_start_is_given_four_times_what_it_took(
    model: str, ready_s: float | None, seconds: int
) -> None:
    source = make_source(model_path=model, measured_on=MeasuredOn(ready_s=ready_s))
    assert machine.start_attempts(source) * machine.PROBE_PERIOD_S == seconds


@pytest.mark.parametrize(("e2e_ms", "seconds"), [(700.0, 5), (20_000.0, 40), (900_000.0, 300)])
def test_a_stop_waits_for_what_is_under_way(e2e_ms: float, seconds: int) -> None:
    source = make_source(outcomes=[outcome(0, points=[point(e2e_p95_ms=e2e_ms)])])
    assert machine.drain_s(source) == seconds
