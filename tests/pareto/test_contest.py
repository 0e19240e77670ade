from __future__ import annotations

from typing import Any

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.contest import Contest, contest_of
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import rule_of, selectable_rows
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import open_study, outcome, point, study
from tests.pareto.again import confirmed, searched


def contest(
    trials: list[TrialOutcome], count: int = 2, prefer: str = "auto", **slo: Any
) -> Contest | None:
    rule = rule_of(SelectConfig(slo=SloConfig(**slo), prefer=prefer))
    return contest_of(selectable_rows(points_frame(trials)), rule, count)


def entered(found: Contest | None) -> list[tuple[int, str]]:
    return [] if found is None else [(entry.trial, entry.level) for entry in found.entries]


def test_the_best_by_throughput_at_the_load_of_the_best() -> None:
    found = contest(searched(100, 120, 140, 130))
    assert entered(found) == [(2, "concurrency 8"), (3, "concurrency 8")]
    assert found is not None
    assert (found.metric, found.lower_is_better) == ("output_tokens_per_s_per_gpu", False)
    assert found.levels == {"concurrency 8"}


def test_with_a_promise_each_stands_at_its_own_load() -> None:
    found = contest(study(), e2e_p95_ms=2000)
    assert entered(found) == [(1, "concurrency 32"), (2, "concurrency 8")]
    assert found is not None
    assert (found.baseline_level, found.baseline_keeps) == ("concurrency 8", True)
    assert found.levels == {"concurrency 8", "concurrency 32"}


def test_defaults_that_keep_no_promise_are_compared_at_the_same_load() -> None:
    found = contest(study(), e2e_p95_ms=390)
    assert entered(found)[0] == (2, "concurrency 1")
    assert found is not None
    assert (found.baseline_level, found.baseline_keeps) == ("concurrency 1", False)


def test_where_requests_come_by_the_clock_latency_decides() -> None:
    found = contest(open_study())
    assert found is not None
    assert (found.metric, found.lower_is_better) == ("e2e_p95_ms", True)
    preferred = contest(study(), prefer="latency", e2e_p95_ms=2000)
    assert preferred is not None and preferred.lower_is_better


def test_what_is_far_behind_the_defaults_is_not_launched_again() -> None:
    assert contest(searched(100, 85, 60)) is None
    assert entered(contest(searched(100, 95, 60))) == [(1, "concurrency 8")]


def test_nothing_to_compare_is_no_contest() -> None:
    assert contest([outcome(0, points=[point(8)])]) is None
    assert contest(searched(100, 130), e2e_p95_ms=1) is None, "nothing keeps the promise"
    failed = outcome(0, verdict=Verdict.CAPACITY)
    assert contest([failed, *searched(100, 130)[1:]]) is None


def test_launches_that_confirm_do_not_change_who_is_confirmed() -> None:
    trials = searched(100, 120, 140, 130)
    later = confirmed(trials, {0: [140, 141], 2: [90, 91], 3: [135, 136]})
    assert contest(later) == contest(trials)


def test_a_smaller_contest_is_the_head_of_a_larger_one() -> None:
    trials = searched(100, 120, 140, 130, 110)
    larger = entered(contest(trials, 4))
    assert [entered(contest(trials, count)) for count in (1, 2, 3)] == [
        larger[:count] for count in (1, 2, 3)
    ]


def test_what_crashed_when_launched_again_gives_its_place_to_the_next() -> None:
    trials = searched(100, 120, 140, 130)
    crashed = confirmed(trials, {0: [100], 2: [Verdict.CRASH_UNDER_LOAD], 3: [131]})
    assert [trial for trial, _ in entered(contest(crashed))] == [3, 1]
