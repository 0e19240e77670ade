from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeper.errors import ConfigError
from sweeper.metrics.external.read import READERS, read_foreign

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("vllm_bench_default.json", "vllm bench serve"),
        ("vllm_bench_detailed.json", "vllm bench serve"),
        ("vllm_bench_seconds.json", "vllm bench serve"),
        ("guidellm_0_8.json", "guidellm"),
        ("inferencex_row.json", "InferenceX"),
    ],
)
def test_the_client_is_detected(name: str, client: str) -> None:
    assert read_foreign((DATA / name).read_text(), name).client == client
    assert client in READERS


def test_of_several_results_the_last_is_taken_and_that_is_said() -> None:
    text = (DATA / "vllm_bench_append.jsonl").read_text()
    run = read_foreign(text, "r.jsonl")
    assert run.levels[0].name == "concurrency 8"
    assert "2 results, the last was taken" in run.notes[0]


def test_another_result_can_be_picked() -> None:
    text = (DATA / "vllm_bench_append.jsonl").read_text()
    run = read_foreign(text, "r.jsonl", 1)
    assert run.levels[0].name == "concurrency 4"
    assert not any("was taken" in note for note in run.notes)


@pytest.mark.parametrize("pick", [0, 3])
def test_a_result_that_is_not_there(pick: int) -> None:
    text = (DATA / "vllm_bench_append.jsonl").read_text()
    with pytest.raises(ConfigError, match=f"no result #{pick}") as caught:
        read_foreign(text, "r.jsonl", pick)
    assert "#1 to #2" in caught.value.remedy


def test_an_unknown_format_names_what_was_looked_for_and_what_was_found() -> None:
    with pytest.raises(ConfigError) as caught:
        read_foreign(json.dumps({"throughput": 3, "latency": 4}), "odd.json")
    message = caught.value.message
    assert "odd.json" in message
    assert "output_throughput" in message
    assert "guidellm: benchmarks not found" in message
    assert "found latency, throughput" in message


def test_a_result_of_another_client_with_like_names_is_not_taken_for_vllm() -> None:
    alike = json.loads((DATA / "vllm_bench_default.json").read_text())
    alike.pop("model_id")
    with pytest.raises(ConfigError, match="vllm bench serve: model_id not found"):
        read_foreign(json.dumps(alike), "alike.json")


@pytest.mark.parametrize("text", ["", "[]", "3", '["a"]', '{"a": 1}\n{"a": ', "no json"])
def test_what_is_no_result_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"x\.json"):
        read_foreign(text, "x.json")
