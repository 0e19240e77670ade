"""The data set and the models of a study."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import WorkloadConfig
from sweeper.tracking.mlflow_names import model_name
from sweeper.tracking.mlflow_subject import data_set, served
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase, Verdict
from tests.factories import outcome
from tests.report.traded import made

WORKLOAD = {"kind": "synthetic", "input_tokens": 512, "seed": 1, "sha256": "5e"}


def with_manifest(**told: Any) -> TrialOutcome:
    one = outcome(1)
    one.manifest = {"model": {"name": "m", "digest": "d"}, "checkpoint": "/a/m", **told}
    return one


def test_equal_requests_are_one_data_set_whatever_it_is_called() -> None:
    identity = {"workload": WORKLOAD}
    one = data_set(WorkloadConfig(name="chat"), identity)
    other = data_set(WorkloadConfig(name="talk"), identity)
    assert one.digest == other.digest and one.name != other.name
    for changed in ({"seed": 2}, {"sha256": "6"}):
        differs = data_set(WorkloadConfig(), {"workload": {**WORKLOAD, **changed}})
        assert differs.digest != one.digest
    assert json.loads(one.source)["sha256"] == "5e"
    assert len(one.digest) <= 36, "MLflow's limit"


def test_a_file_of_ones_own_is_named_without_the_folders_around_it() -> None:
    told = data_set(WorkloadConfig(kind="file", path="/home/me/asked.jsonl"), {})
    assert told.source_type == "local"
    assert json.loads(told.source)["uri"] == "asked.jsonl"
    assert "/home/me" not in told.source


def test_a_model_is_named_with_its_quantization_and_precision() -> None:
    def name(**told: Any) -> str:
        found = served(with_manifest(**told))
        assert found is not None
        return found.name

    assert name(quantization="none", precision="engine default") == "m as published"
    assert name(quantization="none", precision="float32") == "m as published, float32"
    assert name(quantization="fp8_per_tensor", precision="auto") == "m fp8_per_tensor"
    assert name() == "m as the server has it"


def test_one_checkpoint_is_one_model_wherever_it_lies() -> None:
    recipe = made("w4a16", "llmcompressor", group_size=32)
    here = served(with_manifest(quantization="w4a16", made=recipe, checkpoint="/cache/1"))
    there = served(with_manifest(quantization="w4a16", made=recipe, checkpoint="/cache/2"))
    other = served(with_manifest(quantization="w4a16", made={**recipe, "key": "k2"}))
    assert here is not None and there is not None and other is not None
    assert here.key == there.key != other.key
    assert (here.params["recipe"], here.params["group_size"]) == ("w4a16", "32")
    published = {served(with_manifest(checkpoint=c)).key for c in ("/a", "/b")}  # type: ignore[union-attr]
    assert len(published) == 2


@pytest.mark.parametrize("phase", [Phase.PLAN, Phase.QUANTIZE])
def test_what_never_came_to_a_server_served_nothing(phase: Phase) -> None:
    one = with_manifest()
    one.verdict, one.phase = Verdict.CAPACITY, phase
    assert served(one) is None
    one.phase, one.launched = Phase.START, False
    assert served(one) is None
    assert served(outcome(1)) is None, "nothing is known of its model"


@given(st.text(max_size=400))
def test_names_of_models_are_taken_by_mlflow(words: str) -> None:
    name = model_name(words)
    assert name and not set("/:.%\"'") & set(name) and len(name) <= 250
