"""Floors of quality: what falls through names floor, figure and error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import QualityConfig
from sweeper.trial.floors import first_broken
from sweeper.trial.outcome import QualityScore
from sweeper.verdicts import Phase, Verdict

LIMITS = QualityConfig(max_agreement_drop=0.05, max_task_drop=0.1)


def score(**more: Any) -> QualityScore:
    given = {"loglik_change_nats": 0.0, "loglik_change_se_nats": 0.01, "clusters": 12, **more}
    return QualityScore(agreement=0.9, agreement_se=0.01, tokens=192, key="k", **given)


def task(change: float) -> dict[str, dict[str, Any]]:
    return {
        "gsm8k": {
            "metric": "exact_match",
            "value": 0.5,
            "se": 0.01,
            "n": 99,
            "change": change,
            "change_se": 0.01,
        }
    }


@pytest.mark.parametrize(
    ("fallen", "words"),
    [
        ({"loglik_change_nats": -0.5}, ("0.500 ± 0.022 nats", "quality.max_loglik_drop_nats")),
        (
            {"agreement_change": -0.1, "agreement_change_se": 0.01},
            ("agreement with the reference fell by 0.100 ± 0.022", "quality.max_agreement_drop"),
        ),
        ({"tasks": task(-0.2)}, ("gsm8k exact_match fell by 0.200 ± 0.020", "max_task_drop")),
    ],
)
def test_a_fall_beyond_its_error_names_floor_figure_and_error(
    fallen: dict[str, Any], words: tuple[str, str]
) -> None:
    found = first_broken(score(**fallen), LIMITS)
    assert found is not None
    assert (found.verdict, found.phase) == (Verdict.QUALITY_FAIL, Phase.QUALITY)
    assert all(word in found.cause for word in words), found.cause
    assert words[1] in found.remedy


@pytest.mark.parametrize(
    "near",
    [
        {"loglik_change_nats": -0.21},
        {"agreement_change": -0.06, "agreement_change_se": 0.01},
        {"tasks": task(-0.11)},
        {"tasks": {"mine": {"metric": "acc", "value": 0.1, "se": 0.1, "n": 9, "change": None}}},
    ],
)
def test_a_fall_within_its_error_passes(near: dict[str, Any]) -> None:
    assert first_broken(score(**near), LIMITS) is None


def test_a_floor_that_is_not_set_holds_nothing_up() -> None:
    fallen = score(agreement_change=-0.9, agreement_change_se=0.01, tasks=task(-0.9))
    assert first_broken(fallen, QualityConfig()) is None


@given(st.floats(-2, 2), st.floats(0, 0.5))
def test_earlier_journals_are_judged_by_log_likelihood_as_before(change: float, se: float) -> None:
    old = score(loglik_change_nats=change, loglik_change_se_nats=se, clusters=None)
    assert (first_broken(old, LIMITS) is not None) == (change + 1.96 * se < -0.2)
