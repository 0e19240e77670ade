from __future__ import annotations

import pytest

from sweeper.report.comparison.compare import compare
from sweeper.report.comparison.side import Side
from sweeper.report.comparison.verdict import Fairness, Verdict, value_text
from tests.report.comparison.sides import foreign, manifest, point, trial


def verdict(a: Side, b: Side) -> Verdict:
    return compare(a, b).verdict


def test_nothing_differs() -> None:
    assert verdict(trial(), trial()).fairness is Fairness.FAIR


def test_within_a_study_the_deployment_is_what_was_meant_to_differ() -> None:
    found = verdict(trial(), trial(deployment={"max_num_seqs": 64, "quantization": "fp8"}))
    assert found.fairness is Fairness.FAIR_BUT_DEPLOYMENT
    assert found.sentence == (
        "fair except for what was meant to differ: the deployment (max_num_seqs, quantization)"
    )


def test_two_studies_of_the_same_conditions_are_fair() -> None:
    found = verdict(trial("one"), trial("two", deployment={"max_num_seqs": 64}))
    assert found.fairness is Fairness.FAIR_BUT_DEPLOYMENT


def test_predicted_against_measured_is_never_fair_and_is_named_first() -> None:
    told = manifest(engine={"predicted": True, "version": "0.30"}, hardware={"name": "NVIDIA H100"})
    found = verdict(trial(), trial("two", told=told))
    assert found.fairness is Fairness.UNFAIR
    words = [reason.partition(" (")[0] for reason in found.reasons]
    assert words == ["measured or predicted", "device model", "engine version"]


def test_the_worst_reason_comes_first() -> None:
    told = manifest(
        hardware={"name": "NVIDIA H100", "driver": "1"},
        workload={"input_tokens": 99, "sha256": "z"},
        engine={"version": "0.1"},
        load={"warm_up": {"requests_per_stream": 9}},
    )
    found = verdict(trial(), trial("two", told=told, points=[point(input_tokens_mean=99.0)]))
    words = [reason.partition(" (")[0] for reason in found.reasons]
    assert words == [
        "device model",
        "workload hash",
        "input tokens asked",
        "input tokens, mean",
        "engine version",
        "driver",
        "warm-up",
    ]
    assert found.sentence.startswith("unfair, because beyond the deployment these differ: device")


def test_what_is_not_told_between_studies_is_not_known_to_be_fair() -> None:
    found = verdict(trial("one"), trial("two", told=manifest(hardware=None)))
    assert found.fairness is Fairness.NOT_KNOWN
    assert found.unknown == ("device model",)


def test_what_neither_trial_of_one_study_tells_is_held_by_its_identity() -> None:
    bare = manifest(hardware=None)
    assert verdict(trial(told=bare), trial(told=bare)).fairness is Fairness.FAIR
    assert verdict(trial("x", told=bare), trial("y", told=bare)).fairness is Fairness.NOT_KNOWN


def test_a_foreign_file_is_at_most_not_known_to_be_fair() -> None:
    found = verdict(trial(), foreign())
    assert found.fairness is Fairness.NOT_KNOWN
    assert "engine version" in found.unknown
    everything = dict(trial().conditions) | {"client": "vllm bench serve"}
    assert verdict(trial(), foreign(**everything)).fairness is Fairness.NOT_KNOWN
    other = verdict(trial(), foreign(model="org/other"))
    assert other.fairness is Fairness.UNFAIR


def test_another_client_is_noted() -> None:
    assert "client" in verdict(trial(), foreign()).noted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not told"),
        ({"a": 1.0, "b": [1, 2]}, "a=1, b=1, 2"),
        ("d" * 64, "dddddddddddd…"),
        ("a fine name of more than thirty-two characters", None),
        (140.25, "140.2"),
    ],
)
def test_values_in_words(value: object, text: str | None) -> None:
    assert value_text(value) == (text if text is not None else value)
