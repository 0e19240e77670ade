"""Lengths keep their bounds and their mean, and the longest is never exceeded."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import WorkloadConfig
from sweeper.load.workload.lengths import Lengths, LengthSource, longest


@given(
    kind=st.sampled_from(["fixed", "uniform", "normal", "lognormal"]),
    mean=st.integers(1, 5000),
    spread=st.floats(0, 1),
    room=st.floats(1.1, 8),
    least=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_lengths_stay_within_their_bounds(
    *, kind: str, mean: int, spread: float, room: float, least: int, seed: int
) -> None:
    mean = max(mean, least)
    lengths = Lengths(kind, mean, spread, least, round(mean * room))
    rng = random.Random(seed)
    drawn = [lengths.draw(rng) for _ in range(50)]
    assert least <= min(drawn) and max(drawn) <= max(mean, round(mean * room))
    if kind == "fixed":
        assert set(drawn) == {mean}


@pytest.mark.parametrize("kind", ["uniform", "normal", "lognormal"])
@pytest.mark.parametrize("mean", [20, 512])
@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0])
def test_the_mean_is_the_one_asked_for_although_ends_are_cut(
    kind: str, mean: int, spread: float
) -> None:
    lengths = Lengths(kind, mean, spread, 2, mean * 4)
    rng = random.Random(1)
    drawn = [lengths.draw(rng) for _ in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(mean, rel=0.025)
    assert len(set(drawn)) > 3


def test_a_lognormal_has_the_long_tail_and_a_normal_has_not() -> None:
    rng = random.Random(1)

    def share_above_double(kind: str) -> float:
        lengths = Lengths(kind, 500, 0.5, 1, 2000)
        return sum(lengths.draw(rng) > 1200 for _ in range(20_000)) / 20_000

    assert share_above_double("lognormal") > 2 * share_above_double("normal")


def test_spread_is_the_standard_deviation_where_nothing_is_cut() -> None:
    rng = random.Random(1)
    for kind in ("normal", "lognormal"):
        lengths = Lengths(kind, 1000, 0.2, 1, 100_000)
        drawn = [lengths.draw(rng) for _ in range(20_000)]
        mean = sum(drawn) / len(drawn)
        deviation = (sum((one - mean) ** 2 for one in drawn) / len(drawn)) ** 0.5
        assert deviation == pytest.approx(200, rel=0.05)


def test_pairs_depend_on_the_name_alone() -> None:
    cfg = WorkloadConfig(length_distribution="normal", input_spread=0.5, output_spread=0.5)
    one = list(islice(LengthSource(cfg, 1).pairs("a"), 20))
    assert one == list(islice(LengthSource(cfg, 1).pairs("a"), 20))
    assert one != list(islice(LengthSource(cfg, 1).pairs("b"), 20))
    assert one != list(islice(LengthSource(cfg, 2).pairs("a"), 20))


@given(
    kind=st.sampled_from(["fixed", "uniform", "normal", "lognormal"]),
    input_tokens=st.integers(1, 400),
    spread=st.floats(0, 1),
    seed=st.integers(0, 9),
)
def test_no_request_is_longer_than_the_longest(
    kind: str, input_tokens: int, spread: float, seed: int
) -> None:
    cfg = WorkloadConfig(
        length_distribution=kind,
        input_tokens=input_tokens,
        input_spread=spread,
        output_tokens=40,
        output_spread=spread,
    )
    most_in, most_out = longest(cfg)
    for asked_in, asked_out in islice(LengthSource(cfg, seed).pairs("s"), 50):
        assert asked_in <= most_in and asked_out <= most_out


def test_the_longest_of_a_conversation_is_its_last_turn() -> None:
    cfg = WorkloadConfig(kind="conversation", turns=3, input_tokens=100, output_tokens=50)
    longest_input, longest_output = longest(cfg)
    assert 400 <= longest_input <= 480  # 3 texts, 2 answers, and room for the seams
    assert longest_output == 50


def test_the_longest_by_given_limits() -> None:
    cfg = WorkloadConfig(
        length_distribution="lognormal",
        input_tokens=100,
        input_spread=1.0,
        input_tokens_max=250,
        output_tokens=50,
    )
    assert longest(cfg) == (250, 50)
    cfg.length_distribution, cfg.input_tokens_max = "uniform", None
    assert longest(cfg) == (200, 50)
