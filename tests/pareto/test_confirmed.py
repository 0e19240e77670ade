from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.confirmation import CASES, Case, made_up
from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.compare import Gain
from sweeper.pareto.confirmed import BETTER, INCONCLUSIVE, NO_GAIN, Judgement
from sweeper.pareto.points import points_frame, row_dict
from sweeper.pareto.recommendation import Recommendation, headline
from sweeper.pareto.rule import misses
from sweeper.pareto.select import recommend
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import open_load, outcome, point
from tests.pareto.again import again, confirmed, searched

CURSE, PLANTED = CASES[0], Case("planted", gain=0.05, noise=0.01)
SEEDS = range(100)


def choose(trials: list[TrialOutcome], **slo: Any) -> Recommendation:
    found = recommend(points_frame(trials), SelectConfig(slo=SloConfig(**slo)))
    json.dumps(found.to_dict(), allow_nan=False)
    return found


def told(found: Recommendation) -> Judgement:
    assert found.confirmation is not None
    return found.confirmation


def test_nothing_better_is_said_to_be_so_however_lucky_the_winner_was() -> None:
    found = [made_up(CURSE, seed) for seed in SEEDS]
    assert sum(one.no_gain for one in found) >= 95
    lucky = [one.found[0].searched_percent or 0.0 for one in found]
    assert sum(lucky) / len(lucky) > 15, "or there was no winner's curse to be seen through"


def test_a_true_gain_is_confirmed() -> None:
    assert sum(made_up(PLANTED, seed).planted for seed in SEEDS) >= 95


def test_better_is_recommended_by_how_much_it_is() -> None:
    found = choose(confirmed(searched(100, 150), {0: [100, 101, 99], 1: [110, 112, 109]}))
    judged = told(found)
    assert (found.trial, found.confirmed, judged.verdict) == (1, True, BETTER)
    assert judged.percent is not None
    assert judged.percent[0] == pytest.approx(10.3, abs=0.1)
    assert judged.percent[1] > 5 and judged.percent[2] < 16
    assert "confirmed: better by 10.3 % [" in found.headline
    assert "+50.0 % that the search had measured are not counted" in found.reason
    assert "Not confirmed" not in found.reason
    assert found.point["launches"] == 3


def test_no_gain_recommends_the_defaults() -> None:
    found = choose(confirmed(searched(100, 150), {0: [100, 101, 99], 1: [101, 100, 99]}))
    assert (found.is_baseline, found.confirmed) == (True, True)
    assert told(found).verdict == NO_GAIN
    assert "no significant gain over the default" in found.headline
    assert "or more would have shown" in found.reason


def test_what_would_settle_a_small_gain_is_said() -> None:
    found = choose(confirmed(searched(100, 150), {0: [100, 103, 97], 1: [104, 102, 101]}))
    judged = told(found)
    assert judged.verdict == NO_GAIN
    assert judged.repeats_needed is not None and judged.repeats_needed > 3
    assert f"confirm.repeats={judged.repeats_needed} would show it" in found.reason


def test_too_few_launches_are_inconclusive() -> None:
    bad = Verdict.INFRA
    found = choose(confirmed(searched(100, 150), {0: [100, bad, bad], 1: [110, 111, 109]}))
    assert told(found).verdict == INCONCLUSIVE
    assert not found.confirmed
    assert "inconclusive" in found.headline
    assert "Not confirmed" in found.reason


def test_wild_launches_are_inconclusive() -> None:
    found = choose(confirmed(searched(100, 150), {0: [50, 160, 90], 1: [150, 60, 200]}))
    assert told(found).verdict == INCONCLUSIVE
    assert "twice the speed would not show" in found.headline


def test_launches_that_agree_to_the_last_digit_confirm_nothing() -> None:
    found = choose(confirmed(searched(100, 150), {0: [100] * 3, 1: [150] * 3}))
    assert told(found).verdict == INCONCLUSIVE
    assert not found.confirmed


def test_a_winner_that_crashes_is_not_recommended_and_the_next_best_is() -> None:
    crash = Verdict.CRASH_UNDER_LOAD
    trials = confirmed(
        searched(100, 150, 140), {0: [100, 101, 99], 1: [150, crash], 2: [138, 141, 140]}
    )
    found = choose(trials)
    assert (found.trial, told(found).verdict) == (2, BETTER)
    assert "Trial 1 is unstable: launched again as trial 7 it ended CRASH" in found.reason


def test_once_all_crashed_the_next_is_recommended_unconfirmed() -> None:
    crash = Verdict.CRASH_UNDER_LOAD
    found = choose(confirmed(searched(100, 150, 140), {0: [100, 101], 1: [crash], 2: [crash]}))
    assert found.is_baseline
    assert found.confirmation is None and not found.confirmed


def test_a_better_one_that_came_later_is_not_held_back_by_what_was_confirmed() -> None:
    trials = confirmed(searched(100, 150), {0: [100, 101, 99], 1: [110, 112, 109]})
    trials.append(
        outcome(20, deployment={"x": 1}, points=[point(8, throughput=300, e2e_p95_ms=300)])
    )
    found = choose(trials)
    assert (found.trial, found.confirmed, found.confirmation) == (20, False, None)


def test_of_two_that_are_better_and_alike_the_cheaper_is_taken() -> None:
    trials = searched(100, 150, 149)
    trials[1].deployment["tensor_parallel_size"] = 2
    figures = {0: [100, 101, 99], 1: [141, 139, 142], 2: [140, 138, 141]}
    assert choose(confirmed(trials, figures)).trial == 2
    apart = {0: [100, 101, 99], 1: [181, 179, 182], 2: [140, 138, 141]}
    assert choose(confirmed(trials, apart)).trial == 1


def test_a_promise_must_be_kept_in_every_launch() -> None:
    """E2E P95 here is 100000 / throughput: 120 tokens/s keep 840 ms, 118 do not."""
    trials = searched(100, 125, 120)
    figures = {0: [100, 101, 99], 1: [123, 118, 124], 2: [121, 120, 122]}
    found = choose(confirmed(trials, figures), e2e_p95_ms=840)
    assert [one.kept for one in found.confirmations] == [(2, 3), (3, 3)]
    assert (found.trial, found.keeps_slo) == (2, True)


def test_defaults_that_keep_no_promise_are_beaten_by_keeping_it() -> None:
    figures = {0: [100, 101, 99], 1: [123, 122, 124]}
    found = choose(confirmed(searched(100, 125), figures), e2e_p95_ms=840)
    assert told(found).beats_promise
    assert (found.trial, found.confirmed) == (1, True)
    assert "keeps an SLO that the defaults keep at no load" in found.headline


def test_less_latency_is_better_by_so_much_less() -> None:
    def at(latency: float) -> list[Any]:
        return [point(load=open_load(2.0), throughput=90, e2e_p95_ms=latency)]

    base = outcome(0, points=at(1000))
    other = outcome(1, deployment={"a": 1}, points=at(600))
    trials = [base, other]
    for block, (ours, theirs) in enumerate([(800, 1000), (810, 1005), (790, 995)], start=1):
        trials.append(again(2 * block, base, block, at(theirs)))
        trials.append(again(2 * block + 1, other, block, at(ours)))
    judged = told(choose(trials))
    assert judged.verdict == BETTER and judged.lower_is_better
    assert judged.percent is not None
    assert judged.percent[0] == pytest.approx(20, abs=0.5)
    assert judged.percent[1] < judged.percent[0] < judged.percent[2]
    assert "in e2e_p95_ms than the defaults" in choose(trials).headline


def test_another_promise_asks_for_a_confirmation_of_its_own() -> None:
    """The launches stand at 8 streams; under this promise one stream is what can be run."""
    trials = searched(100, 150)
    for one in trials:
        one.points.append(point(1, throughput=20 + one.number, e2e_p95_ms=100))
    trials = confirmed(trials, {0: [100, 101, 99], 1: [110, 112, 109]})
    assert choose(trials).confirmed
    found = choose(trials, e2e_p95_ms=200)
    assert (found.level, found.confirmation) == ("concurrency 1", None)
    assert "Not confirmed" in found.reason


def test_the_worst_launch_decides_whether_a_promise_is_kept() -> None:
    """The mean of the three keeps 840 ms, one of them does not."""
    frame = points_frame(confirmed(searched(100, 125), {0: [100, 101], 1: [124, 118, 124]}))
    row = row_dict(frame.iloc[1].to_dict())
    assert row["e2e_p95_ms"] < 840
    assert misses(row, {"e2e_p95_ms": 840}) == {"e2e_p95_ms": pytest.approx(1000 * 100 / 118 / 840)}


GAIN = Gain("tokens", 112.0, 100.0, 1.12, separated=False, enclosed=False)
JUDGED = Judgement(
    BETTER, 1, "concurrency 8", "concurrency 8", "tokens", False, 1.12, 1.05, 1.2, pairs=3
)


@pytest.mark.parametrize("missed", [{}, {"e2e_p95_ms": 1.5}])
@pytest.mark.parametrize("is_baseline", [False, True])
@pytest.mark.parametrize("is_confirmed", [False, True])
@pytest.mark.parametrize("versus", [None, GAIN])
def test_a_predicted_headline_says_so_whatever_the_verdict(
    missed: dict[str, float], is_baseline: bool, is_confirmed: bool, versus: Gain | None
) -> None:
    point = {"trial": 1, "level": "concurrency 8", "tokens": 100.0, "e2e_p95_ms": 1500.0}
    confirmation = JUDGED if is_confirmed else None
    told = [
        headline(
            {**point, "predicted": predicted},
            missed=missed,
            versus=versus,
            is_baseline=is_baseline,
            throughput="tokens",
            slo=False,
            confirmation=confirmation,
        )
        for predicted in (True, False)
    ]
    assert told[0].endswith(" (predicted).")
    assert "(predicted)" not in told[1]
