"""A launch that is cut short, on the mock engine: what is left of it."""

from __future__ import annotations

from dataclasses import replace

from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Event, LevelDone
from sweeper.trial.to_beat import Axis, Rival, ToBeat
from sweeper.verdicts import Verdict
from tests.trial.conftest import Runner

TPS, E2E = "output_tokens_per_s_per_gpu", "e2e_p95_ms"
ONE, FOUR = "concurrency 1", "concurrency 4"
STAKE = ToBeat(
    axes=(Axis(TPS, 1), Axis(E2E, -1)),
    rivals=(Rival((1e6, 0.1), 0.9),),
    levels=(ONE, FOUR),
    first=FOUR,
    growth={FOUR: {ONE: {TPS: 0.0, E2E: 0.0}}},
    margin=0.05,
    quality=0.9,
    may_cut=True,
    ceiling=(3.0, 0.9),
)


def test_it_is_a_partial_trial_with_real_points_and_no_quality(
    trial: Runner, events: list[Event]
) -> None:
    outcome = trial(to_beat=STAKE, kind="search", number=3).outcome
    assert outcome.verdict is Verdict.OK, outcome.cause
    assert outcome.partial is not None and "cut after concurrency 4" in outcome.partial
    assert [point.level for point in outcome.points] == [FOUR] and outcome.points[0].valid
    assert [event.level for event in events if isinstance(event, LevelDone)] == [FOUR]
    assert outcome.quality is None and "quality" not in outcome.timings_s
    assert set(outcome.learnt["optimistic"]) == {ONE}
    assert outcome.learnt["ceiling"] == [3.0, 0.9] and outcome.learnt["quality_at_most"] == 0.9
    assert TrialOutcome.from_dict(outcome.to_dict()) == outcome


def test_one_that_may_matter_is_measured_whole_from_the_best_ones_level_on(trial: Runner) -> None:
    stake = replace(STAKE, rivals=(Rival((1.0, 1e9), 0.9),))
    outcome = trial(to_beat=stake).outcome
    assert outcome.partial is None and outcome.quality is not None
    assert [point.level for point in outcome.points] == [FOUR, ONE]
    assert not set(outcome.learnt) & {"optimistic", "ceiling"}
