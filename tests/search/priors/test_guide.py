from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

import sweeper.search.priors.guide as guide_module
from sweeper.search.priors.guide import Guide
from sweeper.search.priors.prior import Prediction
from sweeper.space.canonical import canonical, deployment_hash, enumerate_canonical
from sweeper.space.model import Space
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.search.priors.made import Told, config, measured, trial, truth

CFG = config()
SPACE = parse_space(CFG.space)


def wrong(deployment: Mapping[str, Any]) -> float:
    return 100.0 / truth(deployment)


def _always(speed: float) -> Callable[[Mapping[str, Any]], float]:
    return lambda _: speed


def shuffled(seed: int) -> Any:
    everything = enumerate_canonical(SPACE, 1000) or []
    speeds = [truth(one) for one in everything]
    random.Random(seed).shuffle(speeds)
    table = {deployment_hash(one): speed for one, speed in zip(everything, speeds, strict=True)}
    return lambda deployment: table[deployment_hash(deployment)]


def play(guide: Guide, most: int = 10, space: Space = SPACE) -> list[TrialOutcome]:
    """The baseline, then seeds as long as the guide has any."""
    outcomes = [measured(0, {})]
    guide.learn(outcomes[0])
    while len(outcomes) < most and (seeds := guide.seeds(1)):
        deployment = canonical(space, seeds[0])
        outcomes.append(measured(len(outcomes), deployment, kind="seed"))
        guide.learn(outcomes[-1])
    return outcomes


def test_without_priors_it_leads_nowhere() -> None:
    guide = Guide([], CFG, SPACE)
    assert len(play(guide)) == 1
    assert guide.weight == 0.0
    assert guide.expect([{}]) == [None]
    assert guide.conditions({}) == {}
    assert guide.pick([{"max_num_seqs": 8, "tensor_parallel_size": 2}, {"max_num_seqs": 8}]) == {
        "max_num_seqs": 8
    }


def test_nothing_is_said_before_the_baseline_was_measured() -> None:
    guide = Guide([Told(truth)], CFG, SPACE)
    assert guide.seeds(3) == []
    guide.learn(trial(0, {}, verdict=Verdict.CAPACITY))
    assert guide.seeds(3) == []


def test_the_first_seed_of_a_good_prior_is_the_best_there_is() -> None:
    outcomes = play(Guide([Told(truth)], CFG, SPACE))
    assert outcomes[1].deployment == {"max_num_seqs": 256}


def test_what_a_prior_cannot_tell_is_left_to_the_engine() -> None:
    switches = {name: {"choices": [False, True], "default": False} for name in ("enforce_eager",)}
    branch = {
        "speculative": {"choices": ["none", "ngram"]},
        "num_speculative_tokens": {"choices": [2, 3], "when": {"speculative": ["ngram"]}},
    }
    cfg = config(space={**branch, **switches, **CFG.space.parameters})
    space = parse_space(cfg.space)
    # The pool's order is by hash where promises are equal: any of them may be the first.
    refused: list[dict[str, Any]] = [{"max_num_seqs": 256, "enforce_eager": True}]
    outcomes = play(Guide([Told(truth)], cfg, space, lambda one: one in refused), space=space)
    assert outcomes[1].deployment == {"max_num_seqs": 256}


def test_how_fast_a_prior_thinks_the_machine_is_does_not_matter() -> None:
    plain = play(Guide([Told(truth)], CFG, SPACE))
    scaled = play(Guide([Told(lambda deployment: 17.0 * truth(deployment))], CFG, SPACE))
    assert [one.deployment for one in plain] == [one.deployment for one in scaled]


def test_seeds_differ_and_end_when_nothing_more_is_promised() -> None:
    """Every deployment is either dominated or predicted like one that was tried."""
    outcomes = play(Guide([Told(truth)], CFG, SPACE))
    assert len({one.deployment_hash for one in outcomes}) == len(outcomes)
    assert len(outcomes) == 2


def test_no_more_seeds_are_launched_than_asked_for_and_the_spaces_own_do_not_count() -> None:
    cfg = config(seeds=1)
    cfg.space.seeds = [{"max_num_seqs": 8}]
    space = parse_space(cfg.space)
    guide = Guide([Told(truth)], cfg, space)
    guide.learn(measured(0, {}))
    guide.learn(measured(1, {"max_num_seqs": 8}, kind="seed"))
    assert len(guide.seeds(5)) == 1
    guide.learn(measured(2, {"max_num_seqs": 256}, kind="seed"))
    assert guide.seeds(5) == []


def test_a_prior_that_proves_wrong_seeds_no_more_and_expects_nothing() -> None:
    guide = Guide([Told(wrong)], CFG, SPACE)
    outcomes = play(guide)
    assert len(outcomes) <= 3
    for number, seqs in enumerate((8, 16, 32), start=len(outcomes)):
        guide.learn(measured(number, {"max_num_seqs": seqs}))
    assert guide.weights == {"simulator": 0.0}
    assert guide.expect([{"max_num_seqs": 256}]) == [None]
    assert guide.seeds(1) == []


def test_a_prior_that_is_hardly_trusted_orders_no_more_either() -> None:
    guide = Guide([Told(truth)], CFG, SPACE)
    guide.learn(measured(0, {}))
    assert guide.weight == 0.8
    guide.learn(measured(1, {"max_num_seqs": 256}, speed=lambda _: 9.0))
    guide.learn(measured(2, {"max_num_seqs": 8}, speed=lambda _: 8.9))
    assert 0.0 < guide.weights["simulator"] < 0.3
    assert guide.weight == 0.0
    assert guide.expect([{"max_num_seqs": 128}]) == [None]


def test_a_shuffled_prior_wastes_about_two_launches() -> None:
    seeds = [len(play(Guide([Told(shuffled(seed))], CFG, SPACE))) - 1 for seed in range(20)]
    assert sum(seeds) / len(seeds) <= 3.0


def test_the_same_journal_gives_the_same_next_seed() -> None:
    prior = Told(shuffled(3))
    live = Guide([prior], CFG, SPACE)
    outcomes = play(live, most=3)
    again = Guide([Told(shuffled(3))], CFG, SPACE)
    for one in outcomes:
        again.learn(one)
    assert again.seeds(2) == live.seeds(2)
    assert again.weights == live.weights


def test_what_would_not_be_launched_is_no_seed() -> None:
    guide = Guide([Told(truth)], CFG, SPACE, refused=lambda one: one.get("max_num_seqs") == 256)
    outcomes = play(guide)
    assert outcomes[1].deployment == {"max_num_seqs": 128}


def test_a_deployment_that_failed_is_not_held_against_its_like() -> None:
    """The next best is asked for as if the first had not been tried."""
    guide = Guide([Told(truth)], CFG, SPACE)
    guide.learn(measured(0, {}))
    failed = {"kind": "seed", "verdict": Verdict.CAPACITY}
    guide.learn(trial(1, {"max_num_seqs": 256}, **failed))
    assert canonical(SPACE, guide.seeds(1)[0]) == {"max_num_seqs": 128}


def test_suggestions_come_first_and_fade_if_they_do_no_good() -> None:
    suggested = [{"max_num_seqs": 8}, {"max_num_seqs": 16}, {"max_num_seqs": 32}]
    prior = Told(lambda _: None, suggested, kind="published")
    guide = Guide([prior], CFG, SPACE)
    outcomes = play(guide)
    assert [one.deployment for one in outcomes[1:]] == [{"max_num_seqs": 8}]
    assert guide.weights["published"] < 0.3


def test_priors_take_turns() -> None:
    good = Told(truth)
    suggesting = Told(lambda _: None, [{"max_num_seqs": 128}], kind="published")
    outcomes = play(Guide([good, suggesting], CFG, SPACE))
    assert [one.deployment for one in outcomes[1:3]] == [
        {"max_num_seqs": 256},
        {"max_num_seqs": 128},
    ]


def test_equals_are_ordered_by_opinion_and_expectations_are_calibrated() -> None:
    guide = Guide([Told(lambda one: 5.0 * truth(one))], CFG, SPACE)
    play(guide)
    near: list[dict[str, Any]] = [{"max_num_seqs": 8}, {"max_num_seqs": 128}]
    assert guide.pick(near) == {"max_num_seqs": 128}
    (expected,) = guide.expect([{"max_num_seqs": 128}])
    assert expected is not None
    seen = measured(9, {"max_num_seqs": 128}).points
    assert expected[0].metrics == pytest.approx(seen[0].metrics)


def test_order_can_be_left_to_the_sampler() -> None:
    guide = Guide([Told(truth)], config(order=False), SPACE)
    outcomes = play(guide)
    assert len(outcomes) > 1
    assert guide.expect([{}]) == [None]


def test_what_was_only_inferred_is_asked_for_before_it_seeds() -> None:
    prior = Told(truth, inferred=True)
    guide = Guide([prior], CFG, SPACE)
    guide.learn(measured(0, {}))
    size = len(enumerate_canonical(SPACE, 1000) or [])
    assert prior.asked > size, "the best of the pool were asked for once more"
    assert canonical(SPACE, guide.seeds(1)[0]) == {"max_num_seqs": 256}


def test_what_was_inferred_too_high_is_not_launched_for_it() -> None:
    """An inference is a guess about a guess: the source itself has the last word."""

    class Hopeful(Told):
        """Thinks well of few sequences, as long as it is not asked of them alone."""

        def predict(self, deployments: Sequence[Any]) -> list[Prediction | None]:
            many = len(deployments) > 40
            told: list[Prediction | None] = []
            for one in deployments:
                speed = 1000.0 if many and one.get("max_num_seqs") == 8 else truth(one)
                told += Told(_always(speed)).predict([one])
            return [None if one is None else replace(one, inferred=many) for one in told]

    wide = {**CFG.space.parameters, "block_size": {"choices": ["default", 16, 32, 64]}}
    cfg = config(space=wide)
    space = parse_space(cfg.space)
    guide = Guide([Hopeful(truth)], cfg, space)
    guide.learn(measured(0, {}))
    assert canonical(space, guide.seeds(1)[0]) == {"max_num_seqs": 256}


def test_repeats_and_launches_that_were_cut_short_teach_nothing() -> None:
    guide = Guide([Told(truth)], CFG, SPACE)
    guide.learn(measured(0, {}))
    before = guide.weights
    cut = measured(1, {"max_num_seqs": 8})
    cut.partial = "dominated"
    again = measured(2, {"max_num_seqs": 256})
    again.repeats = 1
    for one in (cut, again):
        guide.learn(one)
    assert guide.weights == before


def test_a_trials_manifest_keeps_what_was_predicted_of_it() -> None:
    guide = Guide([Told(truth), Told(lambda _: None, kind="published")], CFG, SPACE)
    kept = guide.conditions({"max_num_seqs": 256})["prior"]
    assert set(kept) == {"simulator"}
    assert kept["simulator"]["concurrency 16"]["output_tokens_per_s_per_gpu"] == 256.0


def test_what_priors_cannot_tell_is_said_once() -> None:
    heard: list[str] = []
    guide = Guide([Told(truth)], CFG, SPACE, say=heard.append)
    play(guide)
    assert heard == ["prior simulator: says what it is told"]


def test_a_space_without_end_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guide_module, "POOL", 100)
    cfg = config(space={"gpu_memory_utilization": {"low": 0.5, "high": 0.9, "default": 0.5}})
    space = parse_space(cfg.space)
    guide = Guide([Told(lambda one: float(one.get("gpu_memory_utilization", 0.5)))], cfg, space)
    guide.learn(measured(0, {}, speed=lambda _: 0.5))
    (seed,) = guide.seeds(1)
    assert seed["gpu_memory_utilization"] > 0.85
