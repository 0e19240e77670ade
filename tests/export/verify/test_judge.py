"""Promised beside started figures, on values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.export.verify.judge import FIGURES, Status, judge, overall
from sweeper.metrics.noise import Noise, Spread

KEPT, NOT_KEPT, CANNOT_TELL = Status.KEPT, Status.NOT_KEPT, Status.CANNOT_TELL
TOKENS, E2E = FIGURES[0], FIGURES[1]
KNOWN = Noise({name: Spread(0.01, 20) for name in FIGURES})


def row(spread: float | None = 0.02, launches: int = 1, **figures: float) -> dict[str, Any]:
    values = {TOKENS: 100.0, E2E: 1000.0, **figures}
    ends = {} if spread is None else {"low": 1 - spread, "high": 1 + spread}
    told = {f"{name}.{end}": v * f for name, v in values.items() for end, f in ends.items()}
    return {**values, **told, "launches": launches}


def of(metric: str, promised: dict[str, Any], verified: dict[str, Any], noise: Noise) -> Status:
    figures, _ = judge(promised, verified, {}, noise)
    return next(one.status for one in figures if one.metric == metric)


@pytest.mark.parametrize(
    ("change", "expected"),
    [(1.5, KEPT), (1.0, KEPT), (0.98, KEPT), (0.9, NOT_KEPT), (0.4, NOT_KEPT)],
)
def test_a_loss_within_the_noise_is_no_loss(change: float, expected: Status) -> None:
    slower = row(output_tokens_per_s=100 * change)
    assert of(TOKENS, row(), slower, KNOWN) is expected
    later = row(e2e_p95_ms=1000 / change)
    assert of(E2E, row(), later, KNOWN) is expected


@pytest.mark.parametrize(
    ("change", "expected"), [(0.98, KEPT), (0.8, CANNOT_TELL), (0.55, CANNOT_TELL), (0.4, NOT_KEPT)]
)
def test_without_repeats_intervals_acquit_and_only_a_factor_of_two_convicts(
    change: float, expected: Status
) -> None:
    assert of(TOKENS, row(), row(output_tokens_per_s=100 * change), Noise()) is expected


def test_without_intervals_either_a_loss_proves_nothing() -> None:
    assert of(TOKENS, row(None), row(None, output_tokens_per_s=99), Noise()) is CANNOT_TELL
    assert of(TOKENS, row(None), row(None, output_tokens_per_s=101), Noise()) is KEPT


def test_noise_that_hides_everything_acquits_nobody() -> None:
    wild = Noise({TOKENS: Spread(0.3, 1)})
    assert of(TOKENS, row(), row(output_tokens_per_s=60), wild) is CANNOT_TELL
    assert of(TOKENS, row(), row(output_tokens_per_s=100), wild) is KEPT


def test_more_launches_tell_finer_losses() -> None:
    slower = {"output_tokens_per_s": 97.5}
    assert of(TOKENS, row(launches=1), row(launches=1, **slower), KNOWN) is KEPT
    assert of(TOKENS, row(launches=9), row(launches=9, **slower), KNOWN) is NOT_KEPT


def test_what_was_not_measured_is_not_kept_by_that() -> None:
    silent = row()
    del silent[E2E]
    assert of(E2E, row(), silent, KNOWN) is CANNOT_TELL


@pytest.mark.parametrize(
    ("value", "expected"), [(480.0, KEPT), (500.0, KEPT), (505.0, CANNOT_TELL), (600.0, NOT_KEPT)]
)
def test_a_limit_is_broken_beyond_the_noise_only(value: float, expected: Status) -> None:
    _, (limit,) = judge(row(), row(e2e_p95_ms=value), {E2E: 500.0}, KNOWN)
    assert (limit.status, limit.verified) == (expected, value)
    _, (alone,) = judge(row(), row(e2e_p95_ms=value), {E2E: 500.0}, Noise())
    assert alone.status is expected, "one launch that breaks it clearly is enough"


def test_a_floor_is_a_limit_too() -> None:
    _, (floor,) = judge(row(), row(), {"min_output_tokens_per_s": 120.0}, KNOWN)
    assert floor.status is NOT_KEPT and "below" in floor.why
    _, (unknown,) = judge(row(), row(), {"min_goodput_share": 0.9}, KNOWN)
    assert unknown.status is CANNOT_TELL


def test_quality_is_held_to_its_floor_by_its_own_error() -> None:
    def status(quality: float) -> Status:
        _, (floor,) = judge(
            row(), row() | {"quality": quality, "quality_se": 0.01}, {"min_quality": 0.9}, KNOWN
        )
        return floor.status

    assert [status(q) for q in (0.92, 0.89, 0.8)] == [KEPT, CANNOT_TELL, NOT_KEPT]


def test_each_launch_must_keep_a_limit() -> None:
    repeats = [{"metrics": {E2E: value}} for value in (490.0, 503.0)]
    _, (limit,) = judge(row(), row(e2e_p95_ms=496.5) | {"repeats": repeats}, {E2E: 500.0}, KNOWN)
    assert limit.status is CANNOT_TELL


def test_a_metric_that_is_promised_is_compared_though_the_readme_does_not_show_it() -> None:
    figures, _ = judge(row(ttft_p99_ms=5.0), row(ttft_p99_ms=50.0), {"ttft_p99_ms": 90.0}, Noise())
    assert {one.metric: one.status for one in figures}["ttft_p99_ms"] is NOT_KEPT


def test_one_broken_part_breaks_the_whole() -> None:
    assert overall([KEPT, CANNOT_TELL, NOT_KEPT]) is NOT_KEPT
    assert overall([KEPT, CANNOT_TELL]) is CANNOT_TELL
    assert overall([KEPT]) is KEPT


@settings(max_examples=60, deadline=None)
@given(
    value=st.floats(1, 1e6),
    better=st.floats(1, 100),
    sd=st.floats(0, 0.5),
    dof=st.integers(1, 50),
)
def test_what_is_no_worse_is_always_kept(value: float, better: float, sd: float, dof: int) -> None:
    noise = Noise({TOKENS: Spread(sd, dof), E2E: Spread(sd, dof)})
    promised = row(output_tokens_per_s=value, e2e_p95_ms=value)
    verified = row(output_tokens_per_s=value * better, e2e_p95_ms=value / better)
    figures, _ = judge(promised, verified, {}, noise)
    assert {one.status for one in figures} == {KEPT}


def test_a_good_deployment_fails_in_about_one_of_twenty_verifications_of_all_its_figures() -> None:
    """The margins are of all figures together; independent ones are the hardest case."""
    import numpy as np

    chance, sd, wrong, rounds = np.random.default_rng(7), 0.02, 0, 400
    noise = Noise({name: Spread(sd, 10_000) for name in FIGURES})
    for _ in range(rounds):
        drawn = np.exp(chance.normal(0, sd, (2, len(FIGURES)))) * 100
        before, now = (dict(zip(FIGURES, map(float, one), strict=True)) for one in drawn)
        figures, _ = judge({**before, "launches": 1}, {**now, "launches": 1}, {}, noise)
        wrong += overall([one.status for one in figures]) is NOT_KEPT
    assert wrong / rounds == pytest.approx(0.05, abs=2.5 * math.sqrt(0.05 * 0.95 / rounds))
