from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.errors import ConfigError, NoFeasibleTrialError
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import front_mask, misses, recommend
from sweeper.trial.outcome import QualityScore, TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import open_load, open_study, outcome, point, quality, study


def choose(outcomes: list[TrialOutcome], prefer: str = "auto", **slo: Any) -> Recommendation:
    return recommend(points_frame(outcomes), SelectConfig(slo=SloConfig(**slo), prefer=prefer))


def test_slo_takes_the_fastest_that_keeps_it() -> None:
    found = choose(study(), e2e_p95_ms=1000)
    assert (found.trial, found.concurrency) == (1, 8)
    assert found.keeps_slo
    assert found.slo == {"e2e_p95_ms": 1000}
    assert found.baseline is not None
    assert found.baseline["concurrency"] == 8
    assert found.ratios["output_tokens_per_s"] == pytest.approx(1.5)
    assert found.gain is not None
    assert found.gain.separated
    assert "+50.0 %" in found.headline


def test_baseline_best_is_the_default_under_the_same_promise() -> None:
    found = choose(study(), e2e_p95_ms=2000)
    assert (found.trial, found.concurrency) == (1, 32)
    assert found.baseline is not None
    assert found.baseline["concurrency"] == 32
    assert found.baseline_best is not None
    assert found.baseline_best["concurrency"] == 8
    assert found.ratios_best["output_tokens_per_s"] == pytest.approx(3.2)


def test_preferences_differ() -> None:
    assert choose(study(), "latency", e2e_p95_ms=1000).point["e2e_p95_ms"] == 300
    assert choose(study(), "quality", e2e_p95_ms=1000).point["quality"] == 1.0
    with pytest.raises(ConfigError, match="prefer"):
        choose(study(), "cheapness")


def test_invalid_points_and_failed_trials_are_never_chosen() -> None:
    broken = outcome(
        5, verdict=Verdict.QUALITY_FAIL, points=[point(8, throughput=9999, e2e_p95_ms=1)]
    )
    invalid = outcome(6, points=[point(8, throughput=9999, e2e_p95_ms=1, valid=False)])
    outcomes = [*study(), broken, invalid]
    assert choose(outcomes, e2e_p95_ms=1000).trial == 1
    assert choose(outcomes).trial in (0, 1, 2)
    frame = points_frame(outcomes)
    assert not front_mask(frame)[frame["trial"].isin([5, 6])].any()


def test_nearest_miss_is_marked_as_one() -> None:
    found = choose(study(), e2e_p95_ms=200)
    assert not found.keeps_slo
    assert found.point["e2e_p95_ms"] == 300
    assert found.missed == {"e2e_p95_ms": pytest.approx(1.5)}
    assert found.headline.startswith("Nothing keeps the SLO.")
    assert "50 % beyond" in found.headline


def test_unmeasured_promise_is_a_broken_one() -> None:
    outcomes = [outcome(0, agreement=None)]
    found = choose(outcomes, min_quality=0.9)
    assert found.missed == {"min_quality": None}
    assert "was not measured" in found.headline
    json.dumps(found.to_dict(), allow_nan=False)
    assert misses({"quality": 0.5}, {"min_quality": 1.0}) == {"min_quality": 2.0}


def test_without_promise_the_knee_of_the_front() -> None:
    found = choose(study())
    frame = points_frame(study())
    row = (frame["trial"] == found.trial) & (frame["concurrency"] == found.concurrency)
    assert front_mask(frame)[row].all()
    assert "Knee" in found.reason
    assert found.slo == {}


def test_gain_inside_the_intervals_is_called_so() -> None:
    close = outcome(1, deployment={"max_num_seqs": 64}, points=[point(8, throughput=101.5)])
    found = choose([outcome(0, points=[point(8)]), close], e2e_p95_ms=2000)
    assert found.gain is not None
    assert not found.gain.separated
    assert "not significant" in found.reason


def test_tie_goes_to_the_defaults() -> None:
    wide = outcome(
        1, deployment={"max_num_seqs": 64}, points=[point(8, throughput=101, spread=0.2)]
    )
    found = choose([outcome(0, points=[point(8)]), wide], e2e_p95_ms=2000)
    assert found.is_baseline
    assert "no significant gain over the default" in found.reason


def test_of_equal_figures_the_deployment_with_the_fewest_settings_is_taken() -> None:
    """As tables and simulators give them where a parameter has no effect."""
    settings_of = [{"max_num_seqs": 64, "block_size": 16}, {"max_num_seqs": 64}]
    same = [
        outcome(number, deployment=deployment, points=[point(8, throughput=200.0)])
        for number, deployment in enumerate(settings_of, start=1)
    ]
    found = choose([outcome(0, points=[point(8)]), *same], e2e_p95_ms=2000)
    assert found.trial == 2


def test_what_was_measured_once_is_not_confirmed() -> None:
    found = choose(study(), e2e_p95_ms=1000)
    assert not found.confirmed
    assert found.confirmation is None
    assert "Not confirmed" in found.reason


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [outcome(0, verdict=Verdict.CAPACITY)],
        [outcome(0, points=[point(valid=False)])],
        [outcome(0, verdict=Verdict.QUALITY_FAIL, points=[point()])],
    ],
)
def test_nothing_feasible_is_an_error_with_a_remedy(outcomes: list[TrialOutcome]) -> None:
    with pytest.raises(NoFeasibleTrialError, match="no trial has a valid operating point") as error:
        choose(outcomes)
    assert "status" in error.value.remedy


def test_alternatives_are_the_ends_of_the_front() -> None:
    found = choose(study(), e2e_p95_ms=1000)
    whys = {(row["trial"], row["concurrency"]): row["why"] for row in found.alternatives}
    assert "highest throughput" in whys[1, 32]
    assert "lowest latency" in whys[2, 1]


def test_failed_baseline_leaves_a_recommendation_without_comparison() -> None:
    outcomes = [outcome(0, verdict=Verdict.CAPACITY), *study()[1:]]
    found = choose(outcomes, e2e_p95_ms=1000)
    assert found.baseline is None
    assert found.ratios == {}
    assert "no valid point" in found.headline


@given(
    st.lists(
        st.tuples(st.floats(1, 1000), st.floats(1, 1000), st.floats(0.5, 1)),
        min_size=1,
        max_size=12,
    ),
    st.none() | st.floats(1, 1000),
)
@settings(max_examples=40, deadline=None)
def test_choice_keeps_the_promise_whenever_something_does(
    figures: list[tuple[float, float, float]], limit: float | None
) -> None:
    outcomes = [
        outcome(
            number,
            deployment={"max_num_seqs": number + 1} if number else {},
            points=[point(8, throughput=t, e2e_p95_ms=latency)],
            agreement=agreement,
        )
        for number, (t, latency, agreement) in enumerate(figures)
    ]
    found = choose(outcomes, e2e_p95_ms=limit)
    possible = [t for t, latency, _ in figures if limit is None or latency <= limit]
    assert found.keeps_slo == bool(possible)
    if limit is not None and possible and not found.is_baseline:
        assert found.point["output_tokens_per_s"] == max(possible)
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_trial_can_be_asked_for_and_the_baseline_stays_beside_it() -> None:
    frame = points_frame(
        [
            outcome(0, points=[point(8, throughput=100)]),
            outcome(1, deployment={"dtype": "float32"}, points=[point(8, throughput=200)]),
            outcome(2, deployment={"block_size": 32}, points=[point(8, throughput=150)]),
        ]
    )
    chosen = recommend(frame, SelectConfig(), only_trial=2)
    assert chosen.trial == 2
    assert chosen.baseline is not None
    assert chosen.gain is not None
    assert chosen.gain.percent == pytest.approx(50)
    with pytest.raises(NoFeasibleTrialError, match="trial 7"):
        recommend(frame, SelectConfig(), only_trial=7)


def test_a_quality_within_the_error_does_not_keep_a_slow_point_on_the_front() -> None:
    slow = outcome(0, points=[point(8, throughput=100, e2e_p95_ms=200)], agreement=0.974)
    fast = outcome(
        1,
        deployment={"dtype": "float32"},
        points=[point(8, throughput=300, e2e_p95_ms=100)],
        agreement=0.970,
    )
    frame = points_frame([slow, fast])
    assert list(front_mask(frame)) == [False, True]
    assert "no change within the error" in recommend(frame, SelectConfig()).reason

    worse = outcome(
        1, deployment={"q": 1}, points=[point(8, throughput=300, e2e_p95_ms=100)], agreement=0.9
    )
    assert list(front_mask(points_frame([slow, worse]))) == [True, True]


def judged_by_perplexity(change: float) -> QualityScore:
    made = quality(0.97)
    made.ranked_by = "perplexity"
    made.perplexity = {
        "nats_per_token": 2.0 + change, "nats_se": 0.2, "perplexity": 2.718281828 ** (2.0 + change),
        "tokens": 2000, "windows": 16, "change_nats": change, "change_se_nats": 0.01,
    }  # fmt: skip
    return made


def test_perplexity_ranks_and_is_called_so() -> None:
    slow = outcome(0, points=[point(8, throughput=100, e2e_p95_ms=200)])
    fast = outcome(
        1, deployment={"q": 1}, points=[point(8, throughput=300, e2e_p95_ms=100)], agreement=0.9
    )
    slow.quality, fast.quality = judged_by_perplexity(0.0), judged_by_perplexity(0.01)
    frame = points_frame([slow, fast])
    assert list(front_mask(frame)) == [False, True], "agreement does not rank here"
    reason = recommend(frame, SelectConfig()).reason
    assert "quality (perplexity) is 7.46, the defaults 7.39: no change within the error" in reason
    fast.quality = judged_by_perplexity(0.1)
    frame = points_frame([slow, fast])
    assert list(front_mask(frame)) == [True, True]
    told = choose([slow, fast], "throughput", e2e_p95_ms=150).reason
    assert "a change beyond the error" in told


def test_baseline_is_compared_at_the_same_rate() -> None:
    found = choose(open_study(), e2e_p95_ms=500)
    assert (found.trial, found.level) == (1, "2 requests/s (poisson)")
    assert (found.concurrency, found.rate_per_s) == (None, 2.0)
    assert found.load_kind == "open"
    assert found.baseline is not None
    assert found.baseline["level"] == found.level
    assert found.ratios["output_tokens_per_s"] == pytest.approx(99 / 90)
    assert found.headline.startswith("Trial 1 at 2 requests/s (poisson): ")
    json.dumps(found.to_dict(), allow_nan=False)


def test_load_that_the_server_could_not_bear_is_not_recommended() -> None:
    """It keeps the promise only because one measured for so short a time."""
    found = choose(open_study(), e2e_p95_ms=800)
    assert found.point["saturated"] is False
    assert found.level != "4 requests/s (poisson)"
    assert choose(open_study()).point["saturated"] is False


def test_if_no_load_could_be_borne_that_is_said() -> None:
    overrun = point(load=open_load(4.0, saturated=True))
    found = choose([outcome(0, points=[overrun])])
    assert "faster than they were served" in found.reason


def test_alternatives_at_rates_are_named_by_their_level() -> None:
    found = choose(open_study(), e2e_p95_ms=500)
    levels = {(row["trial"], row["level"]): row["why"] for row in found.alternatives}
    assert "lowest latency" in levels[1, "1 requests/s (poisson)"]
