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
from sweeper.verdicts import Verdict
from tests.factories import outcome, point

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


def test_best_point_of_nothing_valid_is_none() -> None:
    assert best_point([point(valid=False)]) is None
