"""The ladder on a running server: which levels are driven, and what each of them keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sweeper.config.schema import GoodputConfig, LoadConfig, WorkloadConfig
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from sweeper.trial.climb import _speed_of_light
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Event, LevelDone, Note
from sweeper.verdicts import Verdict
from tests.trial.conftest import Runner, plan_in

MODEL = ModelFacts("LlamaForCausalLM", 2, 64, 128, 4, 2, 16, 1000, 4096, "bfloat16", True)
DEVICE = HardwareFacts("cuda", "imaginary", 1, 16.0, bandwidth_gbs=1000.0, tflops_bf16=100.0)


def load(**changes: Any) -> LoadConfig:
    quick: dict[str, Any] = {
        "concurrency": [1, 4],
        "requests_per_stream": 3,
        "min_requests": 6,
        "request_timeout_s": 5,
        "duration_s": 1.0,
        "gauges_every_s": 0.1,
    }
    return LoadConfig(**(quick | changes))


def ok(outcome: TrialOutcome) -> TrialOutcome:
    assert outcome.verdict is Verdict.OK, outcome.cause
    assert all(point.valid for point in outcome.points), [p.reasons for p in outcome.points]
    return outcome


def rows(folder: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = pq.read_table(folder / "run" / "requests.parquet").to_pylist()
    return read


def test_an_open_ladder_of_rates(trial: Runner, events: list[Event], tmp_path: Path) -> None:
    asked = load(kind="open", rate_per_s=[10.0, 20.0], arrivals="constant")
    outcome = ok(trial(load=asked).outcome)
    assert [point.rate_per_s for point in outcome.points] == [10.0, 20.0]
    assert [point.concurrency for point in outcome.points] == [None, None]
    named = ["10 requests/s (constant)", "20 requests/s (constant)"]
    assert [event.level for event in events if isinstance(event, LevelDone)] == named
    assert [row["load"] for row in rows(tmp_path)] == [named[0]] * 10 + [named[1]] * 20
    assert outcome.points[0].metrics["request_rate_offered_per_s"] == pytest.approx(10, rel=0.15)


def test_repeats_are_one_point_with_prompts_of_their_own(trial: Runner, tmp_path: Path) -> None:
    outcome = ok(trial(load=load(concurrency=[2], repeats=3)).outcome)
    (point,) = outcome.points
    assert point.n == 18 and point.load["repeats"] == 3
    assert [row["repeat"] for row in rows(tmp_path)] == [0] * 6 + [1] * 6 + [2] * 6
    assert point.metrics.get("prefix_cache_hit_share", 0.0) < 0.2


def test_levels_are_found_by_doubling(trial: Runner) -> None:
    asked = load(levels="found", concurrency=[1], max_levels=3, min_growth_share=0.01)
    outcome = ok(trial(load=asked).outcome)
    assert [point.concurrency for point in outcome.points] == [1, 2, 4]


def test_an_slo_search_says_which_rate_keeps_the_limits(trial: Runner) -> None:
    asked = load(
        kind="open",
        levels="slo",
        rate_per_s=[8.0],
        duration_s=0.7,
        max_levels=6,
        rate_tolerance_share=0.5,
        goodput=GoodputConfig(ttft_ms=2000.0),
    )
    outcome = trial(load=asked).outcome
    assert outcome.verdict is Verdict.OK, outcome.cause
    assert outcome.learnt["slo_rate_per_s"] >= 8.0
    assert all("goodput_share" in point.metrics for point in outcome.points)
    assert all("goodput_share" in point.intervals for point in outcome.points)


def test_limits_that_nothing_keeps_are_an_answer_too(trial: Runner) -> None:
    asked = load(
        kind="open",
        levels="slo",
        rate_per_s=[8.0],
        duration_s=0.7,
        max_levels=2,
        goodput=GoodputConfig(ttft_ms=0.001),
    )
    outcome = trial(load=asked).outcome
    assert "slo_rate_per_s" not in outcome.learnt
    assert outcome.learnt["slo_rate_missed_per_s"] <= 8.0


def test_the_speed_of_light_stands_beside_each_point(trial: Runner) -> None:
    outcome = ok(trial(model=MODEL, hardware=DEVICE).outcome)
    for point in outcome.points:
        assert 0 < point.predicted["tpot_floor_ms"] < point.metrics["tpot_mean_ms"]
        assert not set(point.predicted) & set(point.metrics), "predicted and measured stay apart"


def test_a_checkpoints_speed_of_light_is_that_of_its_weights(tmp_path: Path) -> None:
    """The engine is told nothing of its quantization, so its parameters do not say it."""
    metrics = {"achieved_concurrency": 4.0, "input_tokens_mean": 64.0, "output_tokens_mean": 32.0}
    plain, four_bits = (
        _speed_of_light(plan_in(tmp_path, model=MODEL, hardware=DEVICE, weights=weights), metrics)
        for weights in (None, QuantizedWeights("mine", 4, 128))
    )
    assert four_bits["tpot_bandwidth_floor_ms"] < plain["tpot_bandwidth_floor_ms"]


def test_without_facts_there_is_no_speed_of_light(trial: Runner) -> None:
    assert all(not point.predicted for point in ok(trial().outcome).points)


def test_the_manifest_tells_what_was_sent_and_how(trial: Runner) -> None:
    work = WorkloadConfig(input_tokens=16, output_tokens=8, temperature=0.5, top_p=0.9)
    manifest = ok(trial(workload=work).outcome).manifest
    assert manifest["workload"]["kind"] == "synthetic"
    assert len(manifest["workload"]["sha256"]) == 16
    assert manifest["decoding"] == {
        "method": "sampling",
        "temperature": 0.5,
        "ignore_eos": True,
        "beam_width": 1,
        "top_p": 0.9,
    }
    assert manifest["load"]["warm_up"]["max_rounds"] == 1
    assert manifest["started_at"]


def test_the_hash_of_a_workload_is_its_own(trial: Runner) -> None:
    def hash_of(**changes: Any) -> str:
        work = WorkloadConfig(**({"input_tokens": 16, "output_tokens": 8} | changes))
        told = trial(workload=work, load=load(concurrency=[1], min_requests=2)).outcome.manifest
        return str(told["workload"]["sha256"])

    assert hash_of() == hash_of(name="called otherwise")
    assert len({hash_of(), hash_of(output_tokens=9), hash_of(temperature=1.0)}) == 3


def test_text_is_kept_only_where_it_was_asked_for(trial: Runner, tmp_path: Path) -> None:
    path = tmp_path / "run" / "text.jsonl"
    trial()
    assert not path.exists()
    trial(record_text=True)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 6 + 12
    assert set(lines[0]) == {"load", "index", "prompt", "output"} and lines[0]["output"]
    assert path.stat().st_mode & 0o077 == 0, "nobody else may read it"


def test_a_disk_that_refuses_costs_the_requests_and_not_the_measurement(
    trial: Runner, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sweeper.trial.kept.RequestsFile.flush", refuse)
    outcome = ok(trial().outcome)
    assert len(outcome.points) == 2
    notes = [event.text for event in events if isinstance(event, Note)]
    assert [note for note in notes if "No space left" in note] == notes and len(notes) == 1
