from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import sweeper.search.priors.simulator as module
from sweeper.errors import ConfigError, EngineError
from sweeper.estimate.simulator.answer import SimulatorAnswer
from sweeper.estimate.simulator.ask import SimulatorAsk
from sweeper.hardware.facts import HardwareFacts
from sweeper.search.priors.kept import Kept
from sweeper.search.priors.prior import FEW
from sweeper.search.priors.simulator import SimulatorPrior, make
from sweeper.space.canonical import enumerate_canonical
from sweeper.space.parse import parse_space
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.search.priors.made import H200, config, setup

WIDE = {
    "max_num_seqs": {"choices": [8, 16, 32, 64, 128, 256], "default": 64},
    "tensor_parallel_size": {"choices": [1, 2, 4], "default": 1},
    "gpu_memory_utilization": {"choices": [0.5, 0.7, 0.9], "default": 0.9},
    "enforce_eager": {"choices": [False, True], "default": False},
}


class Stub:
    """In the place of the worker: answers by arithmetic, and remembers what it was asked."""

    asked: list[SimulatorAsk] = []  # noqa: RUF012 - emptied by the fixture
    broken = False

    def __init__(self, log_path: Path, **_: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def predict_all(self, asks: Sequence[SimulatorAsk]) -> list[SimulatorAnswer | Diagnosis]:
        if self.broken:
            raise EngineError("the simulator cannot be started", "install it")
        self.asked.extend(asks)
        return [self._one(ask) for ask in asks]

    def _one(self, ask: SimulatorAsk) -> SimulatorAnswer | Diagnosis:
        given: Mapping[str, Any] = ask.parameters
        if given.get("gpu_memory_utilization") == 0.5 or given.get("quantization") == "awq":
            return Diagnosis(Verdict.CAPACITY, Phase.START, "too small", "raise it")
        speed = float(given.get("max_num_seqs", 64)) / float(given.get("tensor_parallel_size", 1))
        return SimulatorAnswer({"output_tokens_per_s_per_gpu": speed}, 8, 1.0)


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> type[Stub]:
    monkeypatch.setattr(Stub, "asked", [])
    monkeypatch.setattr(Stub, "broken", False)
    monkeypatch.setattr(module, "Simulator", Stub)
    return Stub


def prior(tmp_path: Path, space: Mapping[str, Any] = WIDE, **given: Any) -> SimulatorPrior:
    made = make(setup(tmp_path, config(space=space, kinds=["simulator"], **given)), print)
    assert isinstance(made, SimulatorPrior)
    return made


def everything() -> list[dict[str, Any]]:
    return enumerate_canonical(parse_space(config(space=WIDE).space), 1000) or []


def test_few_deployments_are_simulated_at_every_level(tmp_path: Path) -> None:
    (found,) = prior(tmp_path).predict([{"max_num_seqs": 128}])
    assert found is not None and not found.inferred
    assert [ask.concurrency for ask in Stub.asked] == [1, 16]
    assert {ask.hardware for ask in Stub.asked} == {"h200"}
    assert found.points[0].metrics == {"output_tokens_per_s_per_gpu": 128.0}


def test_what_cannot_be_modelled_does_not_tell_deployments_apart(tmp_path: Path) -> None:
    made = prior(tmp_path)
    plain, eager = made.predict([{}, {"enforce_eager": True}])
    assert plain == eager
    assert len(Stub.asked) == 2
    assert made.notes == ["cannot tell enforce_eager apart"]


def test_a_deployment_that_does_not_run_has_no_curve(tmp_path: Path) -> None:
    assert prior(tmp_path).predict([{"gpu_memory_utilization": 0.5}]) == [None]


def test_of_many_a_sample_is_simulated_and_the_rest_inferred(tmp_path: Path) -> None:
    made, space = prior(tmp_path, predictions=40), everything()
    assert len(space) > FEW
    found = made.predict(space)
    assert len(Stub.asked) == 40 + 2, "20 deployments at 2 levels, and the default"
    told = [prediction for prediction in found if prediction is not None]
    assert {prediction.inferred for prediction in told} == {True, False}
    assert any("simulated 20 of 54" in note for note in made.notes)
    again = prior(tmp_path / "other", predictions=40).predict(space)
    assert again == found, "the same asked, the same answered"


def test_a_second_round_of_many_draws_no_second_sample(tmp_path: Path) -> None:
    made, space = prior(tmp_path, predictions=40), everything()
    first = made.predict(space)
    count = len(Stub.asked)
    assert made.predict(space) == first
    assert len(Stub.asked) == count


def test_a_precision_that_was_never_timed_takes_no_budget_and_nothing_is_inferred_for_it(
    tmp_path: Path,
) -> None:
    space = {**WIDE, "quantization": {"choices": ["none", "awq", "fp8_per_tensor"]}}
    made = prior(tmp_path, space, predictions=40)
    everything = enumerate_canonical(parse_space(config(space=space).space), 1000) or []
    found = made.predict(everything)
    told = {
        one.get("quantization")
        for one, prediction in zip(everything, found, strict=True)
        if prediction is not None
    }
    assert told == {None, "fp8_per_tensor"}
    assert sum(ask.parameters.get("quantization") == "awq" for ask in Stub.asked) == 2
    assert "has nothing timed for quantization=awq" in made.notes


def test_answers_are_kept_for_the_next_time(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = [{"max_num_seqs": 128}, {"gpu_memory_utilization": 0.5}]
    first = prior(tmp_path).predict(asked)
    Stub.asked.clear()
    assert prior(tmp_path).predict(asked) == first
    assert Stub.asked == [], "refusals are kept too"
    (kept,) = (tmp_path / "predictions").glob("*.jsonl")
    kept.write_text(kept.read_text()[:-20] + "\n[1]\n")
    assert prior(tmp_path).predict(asked) == first
    assert len(Stub.asked) == 1, "a torn line is simulated again"


def test_a_disk_that_keeps_nothing_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "predictions").write_text("not a folder")
    assert prior(tmp_path).predict([{}])[0] is not None
    assert Kept(tmp_path / "predictions").read(Stub.asked) == [None, None]


def test_a_simulator_that_cannot_be_started_is_said_and_asked_no_more(tmp_path: Path) -> None:
    made = prior(tmp_path)
    Stub.broken = True
    assert made.predict([{}]) == [None]
    assert "cannot be started; install it" in made.notes[-1]
    Stub.broken = False
    assert made.predict([{"max_num_seqs": 8}]) == [None]
    assert Stub.asked == []


def test_drafting_is_neither_promised_nor_refused(tmp_path: Path) -> None:
    space = {**WIDE, "speculative": {"choices": ["none", "ngram"]}}
    plain, drafting = prior(tmp_path, space).predict([{}, {"speculative": "ngram"}])
    assert plain == drafting
    assert plain is not None


def test_another_gpu_can_stand_in(tmp_path: Path) -> None:
    made = prior(tmp_path, hardware="h100_80gb")
    made.predict([{}])
    assert {ask.hardware for ask in Stub.asked} == {"h100_80gb"}
    assert "in place of NVIDIA H200" in made.notes[0]
    with pytest.raises(ConfigError, match="no measured operators"):
        prior(tmp_path, hardware="t4")


def test_where_it_has_nothing_to_say_it_says_why(tmp_path: Path) -> None:
    cfg = config(kinds=["simulator"])
    cpu = HardwareFacts("cpu", "CPU", 1, memory_gib=16.0)
    assert "GPUs only" in str(make(setup(tmp_path, cfg, hardware=cpu), print))
    old = HardwareFacts("cuda", "Tesla T4", 1, memory_gib=16.0)
    assert "prior.hardware=" in str(make(setup(tmp_path, cfg, hardware=old), print))
    unknown = config(kinds=["simulator"])
    unknown.model.facts = {}
    assert "config.json" in str(make(setup(tmp_path, unknown, hardware=H200), print))
