from __future__ import annotations

import math

import pytest

from sweeper.quality.floor import Change
from sweeper.report.quality_words import (
    NATS,
    PER_CENT,
    change_between,
    change_text,
    quality_change,
    quality_text,
)
from tests.factories import quality
from tests.report.traded import score


@pytest.mark.parametrize(
    ("change", "unit", "text"),
    [
        (Change(-0.008, 0.0025), PER_CENT, "-0.8 % ± 0.5 %"),
        (Change(0.0001, 0.002), PER_CENT, "0.0 % ± 0.4 %"),
        (Change(-0.0001, 0.002), PER_CENT, "0.0 % ± 0.4 %"),
        (Change(-0.012, 0.002), NATS, "-0.012 ± 0.004 nats a token"),
        (Change(-2.5, 0.5), "", "-2.500 ± 0.980"),
        (Change(-0.01, math.inf), PER_CENT, "-1.0 % ± unknown"),
        (Change(-0.01, 0.002, 1), NATS, "-0.010 ± unknown nats a token"),
    ],
)
def test_a_change_in_its_unit(change: Change, unit: str, text: str) -> None:
    assert change_text(change, unit) == text


def test_the_paired_change_is_taken_where_there_is_one() -> None:
    # By the two scores' own errors, this fall would be inside the noise.
    told = quality_change(score(-0.008, se=0.002), score(se=0.0))
    assert quality_text(told) == "-0.8 % ± 0.4 %"


def test_a_journal_without_pairs_is_told_by_the_difference() -> None:
    own, other = quality(0.97), quality(0.95)
    assert change_between(own, other) == Change(pytest.approx(-0.02), math.hypot(0.005, 0.005))
    assert quality_text(quality_change(other, own)) == "-2.0 % ± 1.4 %"
    assert quality_text(quality_change(own, own)) == "no change"
    assert quality_text(quality_change(other, None)) == "95.0%"


def test_what_cannot_be_told_from_zero_is_no_change() -> None:
    assert quality_text(quality_change(score(-0.001), score())) == "no change (-0.1 % ± 0.4 %)"
    assert quality_text(None) == "not measured"


def test_an_unknown_error_is_no_proof_of_no_change() -> None:
    alone = score(-0.02, clusters=1)
    assert quality_text(quality_change(alone, score())) == "-2.0 % ± unknown"


def test_two_kinds_of_quality_are_not_subtracted() -> None:
    tasks = {"t": {"metric": "acc", "value": 0.5, "se": 0.1, "n": 50}}
    by_task = score(tasks=tasks, ranked_by="tasks")
    assert change_between(quality(), by_task) is None
