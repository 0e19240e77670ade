"""The simulated engine: what it refuses, what it answers, and what a launch costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import SpaceConfig
from sweeper.engine.levels import LevelAsk
from sweeper.engine.modelling import Modelling
from sweeper.engine.protocol import LaunchFailure, LaunchRequest
from sweeper.engine.simulate.engine import MEAN_LENGTHS, NO_QUALITY
from sweeper.errors import ConfigError, ModelError
from sweeper.hardware.facts import HardwareFacts
from sweeper.space.parse import parse_space
from sweeper.verdicts import Phase, Verdict
from tests.engine.simulate.conftest import Make, surroundings
from tests.models.fakes import QWEN7B_CONFIG

SPACE = parse_space(SpaceConfig(parameters={"max_num_seqs": [64, 128]}))
LEVEL = LevelAsk("closed", 8, None, 32, 512.0, 128.0, seed=1)


def request(folder: Path, **deployment: Any) -> LaunchRequest:
    return LaunchRequest("qwen", {}, folder, "name", 60.0, "token", deployment=deployment)


def ready(make: Make, **options: Any) -> Any:
    engine = make(options)
    engine.foresee(surroundings(), SPACE, lambda text: None)
    return engine


def test_every_figure_is_said_to_be_predicted(make: Make) -> None:
    facts = make().facts()
    assert facts.predicted and facts.device == "cuda" and facts.distribution == "aisimulate"
    assert isinstance(make(), Modelling)


def test_a_level_is_answered_with_predicted_figures(make: Make, tmp_path: Path) -> None:
    with ready(make, start_s=40.0).serve(request(tmp_path, quantization="fp8")) as server:
        assert server.answer is not None and server.virtual_s is not None
        assert server.virtual_s() == 40.0
        found = server.answer(LEVEL)
        assert found.metrics["output_tokens_per_s"] == pytest.approx(8e3 / 3.4)
        assert found.metrics["input_tokens_mean"] == 512 and found.n == 32
        # The level itself, and one request a stream to warm up.
        assert server.virtual_s() == pytest.approx(40.0 + 2.0 + 128 * 3.4e-3)
        assert server.learnt["kv_cache_tokens"] == 1000 and server.learnt["tables"] == "0.24.0"
    kept = json.loads((tmp_path / "simulator.json").read_text())
    assert kept["engine"]["hardware"] == "h200_sxm"


@pytest.mark.parametrize(
    ("deployment", "verdict"),
    [
        ({"gpu_memory_utilization": 0.1}, Verdict.CAPACITY),
        ({"quantization": "awq"}, Verdict.UNKNOWN),
        ({"quantization": "gguf"}, Verdict.INFEASIBLE_CONFIG),
        ({"max_num_seqs": 13}, Verdict.UNKNOWN),
    ],
)
def test_a_deployment_without_prediction_is_a_verdict(
    make: Make, tmp_path: Path, deployment: dict[str, Any], verdict: Verdict
) -> None:
    engine = ready(make)
    with pytest.raises(LaunchFailure) as caught, engine.serve(request(tmp_path, **deployment)):
        pass
    assert caught.value.diagnosis.verdict is verdict
    assert caught.value.virtual_s == 60.0, "a start that fails costs what a start costs"


def test_a_level_without_prediction_is_the_trials_end(make: Make, tmp_path: Path) -> None:
    with ready(make).serve(request(tmp_path)) as server:
        assert server.answer is not None
        with pytest.raises(LaunchFailure, match="too small for a single request") as caught:
            server.answer(replace(LEVEL, concurrency=13))
    found = caught.value.diagnosis
    assert (found.verdict, found.phase) == (Verdict.CAPACITY, Phase.LOAD)


def test_flags_of_every_launch_count(make: Make, tmp_path: Path) -> None:
    engine = make(args={"gpu_memory_utilization": 0.1, "enforce_eager": True})
    notes = engine.foresee(surroundings(), SPACE, lambda text: None).notes
    assert "without effect on predictions: enforce_eager (engine.args)" in notes
    with pytest.raises(LaunchFailure, match="leave no memory"), engine.serve(request(tmp_path)):
        pass


def test_what_cannot_be_known_is_said(make: Make) -> None:
    notes = make().foresee(surroundings(), SPACE, lambda text: None).notes
    assert notes == (NO_QUALITY,)
    varied = surroundings(length_distribution="lognormal", input_spread=1.0)
    assert MEAN_LENGTHS in make().foresee(varied, SPACE, lambda text: None).notes


def test_a_model_that_was_never_timed_ends_it_before_any_launch(make: Make) -> None:
    foreign = surroundings({**QWEN7B_CONFIG, "model_type": "unheard_of"})
    with pytest.raises(ModelError, match="cannot predict Qwen2ForCausalLM on h200"):
        make().foresee(foreign, SPACE, lambda text: None)


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        (HardwareFacts("cpu", "EPYC", 1, 16.0), "this machine has none (EPYC)"),
        (HardwareFacts("cuda", "t4", 1, 16.0), "no measured operators of the GPU 't4'"),
    ],
)
def test_hardware_without_a_model_is_bad_input(
    make: Make, hardware: HardwareFacts, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make().check_hardware(hardware)
    assert said in caught.value.message and "h100_80gb" in caught.value.remedy


@pytest.mark.parametrize(
    "options",
    [{"tables": "mine"}, {"ngram_acceptance": 1.5}, {"ngram_acceptance": "x"}, {"start_s": -1.0}],
)
def test_assumptions_that_cannot_be_are_refused(make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"engine.options.{next(iter(options))}"):
        make(options)


def test_a_deployment_is_exported_in_vllms_own_words(make: Make) -> None:
    engine = make(args={"max_model_len": 4096})
    told, _ = engine.start_command({"quantization": "fp8_per_tensor", "max_num_seqs": 64}, "m")
    assert told == {
        "model": "m",
        "max_model_len": 4096,
        "quantization": "fp8_per_tensor",
        "max_num_seqs": 64,
    }
    told, _ = engine.start_command({"quantization": "my_recipe"}, "m")
    assert "quantization" not in told, "its checkpoint was never made"
