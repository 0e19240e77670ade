"""The simulator's client, on a worker that answers by a formula."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from sweeper.errors import ConfigError, EngineError
from sweeper.estimate.simulator import client
from sweeper.estimate.simulator.answer import SimulatorAnswer
from sweeper.estimate.simulator.client import VERSION, WORKER, Simulator
from sweeper.verdicts import Diagnosis, Verdict
from tests.estimate.simulator.conftest import ask


def test_answers_come_in_the_order_of_the_asks(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BATCH", 2)
    asks = [
        ask(),
        ask({"quantization": "fp8"}),
        ask({"speculative": "eagle"}),
        ask({"gpu_memory_utilization": 0.1}),
        ask(concurrency=16),
    ]
    found = simulator.predict_all(asks)
    rates = [a.metrics["output_tokens_per_s"] for a in found if isinstance(a, SimulatorAnswer)]
    assert rates == pytest.approx([8e3 / 5.4, 8e3 / 3.4, 16e3 / 5.8])
    refused = [answer.verdict for answer in found if isinstance(answer, Diagnosis)]
    assert refused == [Verdict.INFEASIBLE_CONFIG, Verdict.CAPACITY]
    assert isinstance(found[2], Diagnosis) and "eagle needs a draft model" in found[2].cause


def test_one_warm_process_answers_all(simulator: Simulator) -> None:
    first, second = simulator.predict(ask()), simulator.predict(ask(concurrency=16))
    assert isinstance(first, SimulatorAnswer) and isinstance(second, SimulatorAnswer)
    assert first.learnt["pid"] == second.learnt["pid"]
    simulator.close()
    assert not psutil.pid_exists(int(first.learnt["pid"]))
    again = simulator.predict(ask())
    assert isinstance(again, SimulatorAnswer), "a later question starts another one"


def test_what_kills_the_worker_is_one_deployments_fault(simulator: Simulator) -> None:
    found = simulator.predict_all([ask(), ask({"max_num_seqs": 13}), ask(concurrency=16)])
    assert [type(answer) for answer in found] == [SimulatorAnswer, Diagnosis, SimulatorAnswer]
    assert isinstance(found[1], Diagnosis)
    assert (found[1].verdict, found[1].learnt["rule"]) == (Verdict.UNKNOWN, "simulated_fault")


def test_a_simulator_that_cannot_be_had_says_how(tmp_path: Path) -> None:
    with (
        Simulator(tmp_path / "log", python="/no/python") as made,
        pytest.raises(EngineError, match="cannot be started") as caught,
    ):
        made.open()
    assert "engine.python=PATH" in caught.value.remedy


def test_an_unknown_gpu_is_bad_input_before_any_worker(simulator: Simulator) -> None:
    with pytest.raises(ConfigError, match="t4"):
        simulator.predict(ask(hardware="t4"))


def test_the_worker_pins_the_version_that_is_recorded() -> None:
    assert f'"aisimulate=={VERSION}"' in WORKER.read_text()
