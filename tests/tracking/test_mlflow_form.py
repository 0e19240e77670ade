from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.tracking.mlflow_form import (
    MAX_NAME_LENGTH,
    MAX_PARAM_LENGTH,
    best_point,
    params,
    run_form,
    safe_names,
    sanitise,
)
from sweeper.verdicts import Phase, Verdict
from tests.factories import open_load, open_study, outcome, point
from tests.report.traded import KEYS, made, score, traded

ACCEPTED = re.compile(r"[A-Za-z0-9_\-.:/ ]+")


@given(st.sets(st.text(max_size=300), max_size=20))
def test_names_are_accepted_and_never_collide(names: set[str]) -> None:
    safe = safe_names(names)
    assert set(safe) == names
    assert len(set(safe.values())) == len(names)
    for name in safe.values():
        assert ACCEPTED.fullmatch(name)
        assert len(name) <= MAX_NAME_LENGTH
        assert not name.startswith("/")
        assert not {"", ".", ".."} & set(name.split("/"))


def test_good_names_stay_as_they_are_even_beside_a_collision() -> None:
    assert sanitise("flag.max_seqs") == "flag.max_seqs"
    safe = safe_names(["a(b)", "a_b_", "p95%"])
    assert safe["a_b_"] == "a_b_"
    assert safe["a(b)"].startswith("a_b_-")
    assert safe["p95%"] == "p95pct"


def test_parameters_left_to_the_engine_are_columns_too() -> None:
    found = params({"max_num_seqs": 64, "flag.x": True}, ["max_num_seqs", "quantization"])
    assert found == {"flag.x": "true", "max_num_seqs": "64", "quantization": "default"}


def test_long_value_is_cut() -> None:
    assert len(params({"flag.x": "y" * 9000}, [])["flag.x"]) == MAX_PARAM_LENGTH


def test_steps_are_the_concurrency_and_invalid_points_stand_apart() -> None:
    form = run_form(
        outcome(3, points=[point(1, throughput=5), point(8, throughput=9, valid=False)]), []
    )
    assert ("output_tokens_per_s", 5.0, 1) in form.metrics
    assert ("invalid/output_tokens_per_s", 9.0, 8) in form.metrics
    assert ("output_tokens_per_s", 9.0, 8) not in form.metrics
    assert ("best_output_tokens_per_s", 5.0, 0) in form.metrics
    assert ("quality_agreement", 1.0, 0) in form.metrics
    assert form.name == "003-search"


def test_a_made_checkpoint_has_its_recipe_and_its_sizes() -> None:
    found = traded(
        3,
        deployment={"quantization": "w4a16", "quantize.group_size": 32},
        quality=score(-0.04),
        made_here=made("w4a16", "llmcompressor", group_size=32),
    )
    form = run_form(found, ["quantization", "quantize.group_size", "quantize.bits"])
    told = {name: form.params[f"quantize.{name}"] for name in ("recipe", "tool", "bits")}
    assert told == {"recipe": "w4a16", "tool": "llmcompressor", "bits": "4"}
    assert form.params["quantize.group_size"] == "32"
    assert form.params["quantize.checkpoint_key"] == KEYS["w4a16"]
    metrics = {name: value for name, value, _ in form.metrics}
    assert metrics["checkpoint_gib"] == pytest.approx(0.25)
    assert (metrics["model_memory_gib"], metrics["kv_cache_tokens"]) == (0.26, 200_000)
    assert metrics["quantize_s"] == 92.0
    assert metrics["quality_agreement_change"] == -0.04
    assert form.tags["quality"] == "agreement with the reference"


def test_a_checkpoint_that_could_not_be_made_has_no_size() -> None:
    failed = traded(
        3, verdict=Verdict.CAPACITY, phase=Phase.QUANTIZE, deployment={"quantization": "w4a16"}
    )
    names = {name for name, _, _ in run_form(failed, []).metrics}
    assert "checkpoint_gib" not in names
    assert "quantize_s" not in names


def test_every_quality_that_was_measured_is_a_metric() -> None:
    tasks = {"gsm8k": {"metric": "exact_match", "value": 0.5, "se": 0.05, "n": 100}}
    found = traded(1, quality=score(tasks=tasks, perplexity={"perplexity": 7.4}))
    metrics = {name: value for name, value, _ in run_form(found, []).metrics}
    assert metrics["quality_task_gsm8k"] == 0.5
    assert metrics["quality_perplexity"] == 7.4
    assert "quality_task_gsm8k_change" not in metrics


def test_non_finite_metrics_are_left_out() -> None:
    form = run_form(outcome(points=[point(odd=float("inf"), odder=float("nan"))]), [])
    assert not any(name in ("odd", "odder") for name, _, _ in form.metrics)


@pytest.mark.parametrize(
    ("verdict", "finished"), [(Verdict.OK, True), (Verdict.CAPACITY, False), (Verdict.INFRA, False)]
)
def test_only_ok_is_finished(verdict: Verdict, finished: bool) -> None:
    form = run_form(outcome(1, verdict=verdict), [])
    assert form.finished is finished
    assert form.tags["verdict"] == verdict
    assert ("cause" in form.tags) is not finished


def test_retry_has_a_name_and_tag_of_its_own() -> None:
    form = run_form(outcome(1, attempt=2), [])
    assert form.name == "001-search-retry2"
    assert form.tags["attempt"] == "2"


def test_a_launch_that_confirms_names_the_trial_that_it_repeats() -> None:
    form = run_form(outcome(21, kind="confirm", repeats=5), [])
    assert (form.name, form.tags["kind"], form.tags["repeats"]) == ("021-confirm", "confirm", "5")
    assert "repeats" not in run_form(outcome(5), []).tags


def test_best_point_of_nothing_valid_is_none() -> None:
    assert best_point([point(valid=False)]) is None


def test_steps_at_request_rates_are_places_in_the_ladder() -> None:
    form = run_form(open_study()[0], [])
    steps = {value: step for name, value, step in form.metrics if name == "output_tokens_per_s"}
    assert steps == {50.0: 0, 90.0: 1, 120.0: 2}
    assert ("best_rate_per_s", 4.0, 0) in form.metrics
    assert not any(name == "best_concurrency" for name, _, _ in form.metrics)


def test_predicted_figures_are_logged_as_such() -> None:
    bounded = point(8)
    bounded.predicted = {"tpot_floor_ms": 5.0, "odd%name": 1.0, "endless": float("inf")}
    names = {
        name: (value, step)
        for name, value, step in run_form(outcome(0, points=[bounded]), []).metrics
    }
    assert names["predicted.tpot_floor_ms"] == (5.0, 8)
    assert names["predicted.oddpctname"] == (1.0, 8)
    assert "tpot_floor_ms" not in names
    assert "predicted.endless" not in names


def test_new_metrics_are_logged_and_the_rate_of_an_slo_search_too() -> None:
    kept = point(load=open_load(2.0), goodput_share=0.995)
    form = run_form(outcome(0, points=[kept], learnt={"slo_rate_per_s": 2.0}), [])
    assert ("goodput_share", 0.995, 0) in form.metrics
    assert ("slo_rate_per_s", 2.0, 0) in form.metrics
