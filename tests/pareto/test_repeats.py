from __future__ import annotations

import json
import math

import pytest

from sweeper.pareto.points import points_frame, row_dict
from sweeper.pareto.repeats import as_searched, noise_of, noise_of_rows
from sweeper.pareto.select import front_mask, selectable
from sweeper.verdicts import Verdict
from tests.factories import outcome, point
from tests.pareto.again import again, confirmed, searched

THROUGHPUT = "output_tokens_per_s_per_gpu"


def test_repeats_are_pooled_into_the_trial_and_make_no_row() -> None:
    frame = points_frame(confirmed(searched(100, 130), {0: [98, 102, 100], 1: [108, 110, 112]}))
    assert frame["trial"].tolist() == [0, 1]
    assert frame["launches"].tolist() == [3, 3]
    best = row_dict(dict(frame.iloc[1]))
    assert best[THROUGHPUT] == pytest.approx((108 * 110 * 112) ** (1 / 3))
    assert best["searched"][THROUGHPUT] == 130, "what got it chosen is kept, and not used"
    assert best["n"] == 3 * 64
    assert [one["block"] for one in best["repeats"]] == [1, 2, 3]
    json.dumps(best, allow_nan=False)


def test_intervals_are_those_of_launches() -> None:
    trials = confirmed(searched(100, 130), {0: [98, 102, 100], 1: [108, 110, 112]})
    row = points_frame(trials).iloc[1]
    margin = noise_of(trials).margin(THROUGHPUT, (3, 10**9))
    assert margin is not None
    assert row[f"{THROUGHPUT}.low"] == pytest.approx(row[THROUGHPUT] * math.exp(-margin))
    assert row[f"{THROUGHPUT}.high"] == pytest.approx(row[THROUGHPUT] * math.exp(margin))


def test_a_row_is_known_by_its_searched_figures_again() -> None:
    plain = row_dict(dict(points_frame(searched(100, 130)).iloc[1]))
    trials = confirmed(searched(100, 130), {0: [98, 102, 100], 1: [108, 110, 112]})
    assert as_searched(row_dict(dict(points_frame(trials).iloc[1]))) == plain
    assert as_searched(plain) == plain


def test_a_level_that_only_the_repeats_saw_is_a_row_that_no_search_knew() -> None:
    trials = searched(100, 130)
    trials.append(again(2, trials[1], 1, [point(32, throughput=300)]))
    frame = points_frame(trials)
    added = row_dict(dict(frame[frame["level"] == "concurrency 32"].iloc[0]))
    assert (added["trial"], added["rung"], added["launches"]) == (1, 1, 1)
    assert as_searched(added) is None


def test_noise_counts_the_baselines_first_launch_and_no_winners() -> None:
    trials = confirmed(searched(100, 160), {0: [101, 99, 100], 1: [110, 111, 109]})
    spread = noise_of(trials).spreads[THROUGHPUT]
    assert spread.dof == 3 + 2
    assert spread.sd_log < 0.02, "the lucky 160 is no noise of a launch"
    rows = [row_dict(row) for row in points_frame(trials).to_dict("records")]
    assert noise_of_rows(rows).spreads[THROUGHPUT].dof == spread.dof
    assert noise_of_rows(rows).cv(THROUGHPUT) == pytest.approx(spread.cv)


def test_a_crash_when_launched_again_makes_a_deployment_unstable() -> None:
    crash = Verdict.CRASH_UNDER_LOAD
    frame = points_frame(confirmed(searched(100, 130), {0: [98, 102], 1: [131, crash]}))
    assert selectable(frame)["trial"].tolist() == [0]
    assert frame.iloc[1]["verdict"] == "CRASH_UNDER_LOAD"
    assert "launched again as trial 5 it ended CRASH_UNDER_LOAD" in frame.iloc[1]["unstable"]


@pytest.mark.parametrize("verdict", [Verdict.INFRA, Verdict.MEASUREMENT_INVALID])
def test_a_fault_of_the_surroundings_says_nothing_of_the_deployment(verdict: Verdict) -> None:
    frame = points_frame(confirmed(searched(100, 130), {0: [98, 102], 1: [131, verdict]}))
    assert frame["unstable"].tolist() == ["", ""]
    assert frame["launches"].tolist() == [2, 1]


def test_a_crash_of_the_defaults_does_not_take_them_away() -> None:
    crash = Verdict.CRASH_UNDER_LOAD
    frame = points_frame(confirmed(searched(100, 130), {0: [98, crash], 1: [131, 130]}))
    assert frame["verdict"].tolist() == ["OK", "OK"]


def test_an_invalid_first_measurement_is_mended_by_valid_repeats() -> None:
    first = outcome(1, deployment={"a": 1}, points=[point(8, valid=False)])
    trials = confirmed([outcome(0, points=[point(8)]), first], {0: [100, 101], 1: [110, 111]})
    assert points_frame(trials)["valid"].tolist() == [True, True]


def test_points_within_the_noise_stay_on_the_front() -> None:
    trials = confirmed(searched(100, 104, 103, 80), {0: [96, 104, 100], 1: [106, 98, 102]})
    frame = points_frame(trials)
    assert front_mask(frame, with_ties=False).tolist() == [False, False, True, False]
    assert front_mask(frame).tolist() == [True, True, True, False]
