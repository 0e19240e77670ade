from __future__ import annotations

from sweeper.metrics.external.result import ForeignLevel
from sweeper.verdicts import Verdict
from tests.report.comparison.sides import foreign, manifest, trial


def test_what_the_manifest_tells_is_there_and_nothing_else() -> None:
    conditions = trial().conditions
    assert conditions["model"] == "smollm2"
    assert conditions["engine_version"] == "0.33.0"
    assert conditions["input_tokens_asked"] == 24
    assert conditions["workload"] == {"kind": "synthetic"}
    assert conditions["workload_hash"] == "abc"
    assert conditions["warm_up"] == {"requests_per_stream": 1}
    assert conditions["numbers"] == "measured"
    assert "tokenizer" not in conditions
    assert "revision" not in conditions


def test_an_empty_manifest_is_no_obstacle() -> None:
    side = trial(told={})
    assert "engine" not in side.conditions
    assert "numbers" not in side.conditions
    assert side.arguments is None
    assert [level.name for level in side.levels] == ["concurrency 8"]


def test_predicted_numbers_are_named() -> None:
    assert trial(told=manifest(engine={"predicted": True})).conditions["numbers"] == "predicted"
    assert trial(told=manifest(measured=False)).conditions["numbers"] == "predicted"


def test_the_old_form_of_the_warm_up_is_understood() -> None:
    told = manifest(load=None) | {"load": {"warmup_requests_per_stream": 2}}
    assert trial(told=told).conditions["warm_up"] == {"requests_per_stream": 2}


def test_precision_is_the_one_in_effect() -> None:
    told = manifest(precision="engine default", effective_args={"dtype": "float16"})
    assert trial(told=told).conditions["precision"] == "float16"


def test_a_trial_that_ended_badly_says_so() -> None:
    side = trial(verdict=Verdict.CAPACITY, points=[])
    assert "CAPACITY" in side.notes[0]
    assert trial().notes == ()


def test_of_a_file_with_one_load_twice_the_last_is_taken_and_said() -> None:
    load = {"kind": "closed", "concurrency": 8}
    first = ForeignLevel("concurrency 8", load, {"ttft_p50_ms": 1.0}, 10)
    second = ForeignLevel("concurrency 8", load, {"ttft_p50_ms": 2.0}, 10)
    side = foreign(first, second)
    assert [level.metrics["ttft_p50_ms"] for level in side.levels] == [2.0]
    assert any("several results" in note for note in side.notes)


def test_a_level_of_a_file_with_a_fault_is_not_valid() -> None:
    load = {"kind": "closed", "concurrency": 8}
    bad = ForeignLevel("concurrency 8", load, {}, 10, reasons=("1 of 20",))
    assert not foreign(bad).levels[0].valid
    assert foreign().levels[0].valid
    assert foreign().foreign
    assert not trial().foreign
