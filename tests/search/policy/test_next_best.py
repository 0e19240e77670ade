"""Decisions of the model: ties, costs, asks at once, prior knowledge, what has no effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import SamplerConfig, SpaceConfig
from sweeper.search.policy.chooser import Ground
from sweeper.search.policy.costs import Costs
from sweeper.search.policy.next_best import NextBest, fitted_to
from sweeper.search.policy.open import Open
from sweeper.space.canonical import baseline, canonical, deployment_hash
from sweeper.space.model import Space
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import Point, TrialOutcome
from tests.factories import outcome, point
from tests.search.policy.toy import BEST_DEPLOYMENT, SPACE, Study, measured, objective

Launch = Callable[[Mapping[str, Any], int], TrialOutcome]


def chooser(space: Space = SPACE, **fields: Any) -> NextBest:
    open_ = Open(space, lambda _: [])
    return NextBest(Ground(space, open_, objective(), SamplerConfig(kind="gp"), **fields))


def launched(space: Space, launch: Launch, count: int, **fields: Any) -> list[TrialOutcome]:
    """The first launches of a study, one after another."""
    decide = chooser(space, **fields)
    journal = [launch(canonical(space, baseline(space)), 0)]
    while len(journal) < count:
        deployment = decide.choose(journal, {})
        assert deployment is not None
        journal.append(launch(deployment, len(journal)))
    return journal


def test_several_asked_for_at_once_differ_and_none_is_known() -> None:
    journal = launched(SPACE, measured, 6)
    decide, trying = chooser(), {}
    for _ in range(4):
        chosen = decide.choose(journal, trying)
        assert chosen is not None
        trying[deployment_hash(chosen)] = chosen
    assert len(trying) == 4
    assert not set(trying) & {one.deployment_hash for one in journal}


def ladder(deployment: Mapping[str, Any], number: int, speed: float) -> TrialOutcome:
    points = [
        point(level, throughput=50 * speed * level**0.8, e2e_p95_ms=2000 * level**0.2 / speed)
        for level in (1, 8, 64)
    ]
    made = outcome(number, deployment=dict(deployment), points=points)
    made.deployment_hash = deployment_hash(deployment)
    return made


CHECKPOINTS = parse_space(
    SpaceConfig(
        name="checkpoints",
        parameters={
            "quantization": ["none", "gptq", "awq"],
            "block_size": {"choices": [16, 32, 64, 128], "default": 16},
        },
    )
)


SWITCHES = parse_space(
    SpaceConfig(
        name="switches",
        parameters={
            "max_num_seqs": {"choices": [16, 32, 64, 128], "default": 64},
            "block_size": {"choices": [16, 32, 64], "default": 16},
            "enable_prefix_caching": ["default", False],
            "enable_chunked_prefill": ["default", False],
            "kv_cache_dtype": ["auto", "fp8"],
        },
    )
)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_launch_after_the_baseline_turns_every_switch(seed: int) -> None:
    """Drawn evenly, one launch in eight would turn all three."""
    ground = Ground(
        SWITCHES, Open(SWITCHES, lambda _: []), objective(), SamplerConfig(kind="gp", seed=seed)
    )
    chosen = NextBest(ground).choose([ladder({}, 0, 1.0)], {})
    assert chosen is not None
    assert {"enable_prefix_caching", "enable_chunked_prefill", "kv_cache_dtype"} <= set(chosen)


def test_the_first_launches_asked_for_at_once_lie_apart() -> None:
    """The second is not the first but for one value: what is being tried counts as known."""
    decide = chooser(SWITCHES)
    journal = [ladder({}, 0, 1.0)]
    first = decide.choose(journal, {})
    assert first is not None
    second = decide.choose(journal, {deployment_hash(first): first})
    assert second is not None
    names = [parameter.name for parameter in SWITCHES.parameters]
    assert sum(first.get(name) != second.get(name) for name in names) >= 3


def test_what_a_rule_refuses_is_no_first_launch() -> None:
    refused = Open(SWITCHES, lambda one: ["refused"] if one.get("kv_cache_dtype") else [])
    ground = Ground(SWITCHES, refused, objective(), SamplerConfig(kind="gp"))
    chosen = NextBest(ground).choose([ladder({}, 0, 1.0)], {})
    assert chosen is not None
    assert "kv_cache_dtype" not in chosen
    assert "enable_prefix_caching" in chosen


@pytest.mark.parametrize("made", ["gptq", "awq"])
def test_of_equal_candidates_the_one_that_is_cheapest_to_launch_is_taken(made: str) -> None:
    """Nothing is known of either, so nothing but the cost speaks for one of them."""
    launched = [{}, {"block_size": 128}, {"block_size": 32}]
    journal = [ladder(one, number, 1.0) for number, one in enumerate(launched)]
    decide = chooser(CHECKPOINTS, costs=Costs(lambda one: one.get("quantization") == made))
    chosen = decide.choose(journal, {})
    assert chosen is not None
    assert chosen["quantization"] == {"gptq": "awq", "awq": "gptq"}[made]


@pytest.mark.parametrize("by_cost", [False, True])
def test_a_budget_of_time_weighs_gain_against_cost(by_cost: bool) -> None:
    """What nobody has tried promises most, and making it takes as long as a hundred launches."""
    known = [{}, {"block_size": 32}, {"block_size": 128}, {"quantization": "awq"}]
    speeds = [1.0, 1.001, 0.999, 1.0]
    journal = [ladder(one, number, speeds[number]) for number, one in enumerate(known)]
    for one in journal:
        is_made = "quantization" in one.deployment
        one.timings_s = {"total": 6000.0, "quantize": 5940.0} if is_made else {"total": 60.0}
    costs = Costs(lambda deployment: "quantization" in deployment)
    chosen = chooser(CHECKPOINTS, costs=costs, by_cost=by_cost).choose(journal, {})
    assert chosen is not None
    assert (chosen.get("quantization") == "gptq") is not by_cost


class Told:
    """Prior knowledge of this formula, right or wrong."""

    def __init__(self, expected: Callable[[Mapping[str, Any]], list[Point]]) -> None:
        self._expected = expected

    def seeds(self, count: int) -> Sequence[dict[str, Any]]:
        return []

    def pick(self, candidates: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return candidates[0]

    def learn(self, outcome: TrialOutcome) -> None:
        return None

    def expect(self, deployments: Sequence[dict[str, Any]]) -> Sequence[Sequence[Point] | None]:
        return [self._expected(one) or None for one in deployments]


def test_prior_knowledge_that_is_right_leads_to_the_best_at_once() -> None:
    guide = Told(lambda deployment: measured(deployment, 1).points)
    journal = launched(SPACE, measured, 6, guide=guide)
    assert BEST_DEPLOYMENT in [one.deployment for one in journal]


def test_a_parameter_without_effect_is_told_and_no_longer_varied() -> None:
    space = parse_space(
        SpaceConfig(
            name="inert",
            parameters={
                "max_num_seqs": {"choices": [2, 4, 8, 16, 32, 64], "default": 16},
                "block_size": {"choices": [16, 32, 64], "default": 16},
                "enable_prefix_caching": ["default", False],
            },
        )
    )
    heard: list[str] = []

    def launch(deployment: Mapping[str, Any], number: int) -> TrialOutcome:
        slots = deployment.get("max_num_seqs", 16)
        points = []
        for level in (1, 8, 64):
            speed = 50 * min(level, slots) ** 0.8 * (0.97 if slots > 32 else 1.0)
            points.append(point(level, throughput=speed, e2e_p95_ms=level * 1e5 / speed))
        made = outcome(number, deployment=dict(deployment), points=points)
        made.deployment_hash = deployment_hash(deployment)
        return made

    varied = [
        {}, {"block_size": 32}, {"block_size": 64, "max_num_seqs": 4},
        {"enable_prefix_caching": False, "max_num_seqs": 64}, {"max_num_seqs": 2},
        {"enable_prefix_caching": False, "block_size": 32, "max_num_seqs": 8},
        {"enable_prefix_caching": False}, {"max_num_seqs": 32, "block_size": 64},
        {"max_num_seqs": 64, "block_size": 32}, {"max_num_seqs": 4},
        {"enable_prefix_caching": False, "max_num_seqs": 32}, {"max_num_seqs": 8},
    ]  # fmt: skip
    journal = [launch(one, number) for number, one in enumerate(varied)]
    chosen = chooser(space, tell=heard.append).choose(journal, {})
    assert chosen in ({"max_num_seqs": 32}, {"max_num_seqs": 64})
    assert heard == [
        "no effect in 12 launches, so left at the default where anything else is left to try: "
        "block_size, enable_prefix_caching"
    ]


def test_seeds_of_prior_knowledge_come_before_the_sampler(tmp_path: Path) -> None:
    class Seeding(Told):
        def seeds(self, count: int) -> Sequence[dict[str, Any]]:
            return [{**baseline(SPACE), **BEST_DEPLOYMENT}]

    study = Study(tmp_path, "random", guide=Seeding(lambda _: []))
    assert study.run(3)[1].deployment == BEST_DEPLOYMENT


@given(st.integers(0, 20_000))
def test_a_decision_rests_on_nearly_all_that_is_known(count: int) -> None:
    fitted = fitted_to(count)
    assert fitted <= count
    assert count - fitted <= count / 50 + 1
    assert fitted == count or count >= 100


def test_a_space_too_large_to_list_is_searched_all_the_same() -> None:
    space = parse_space(
        SpaceConfig(
            name="wide",
            parameters={
                "max_num_seqs": {"low": 1, "high": 1024, "default": 256, "log": True},
                "max_num_batched_tokens": {"low": 512, "high": 16384, "default": 2048},
                "gpu_memory_utilization": {"low": 0.5, "high": 0.95, "default": 0.9},
            },
        )
    )

    def launch(deployment: Mapping[str, Any], number: int) -> TrialOutcome:
        slots = deployment.get("max_num_seqs", 256)
        return ladder(deployment, number, 2.0 - abs(slots - 40) / 1024)

    journal = launched(space, launch, 12)
    best = min(abs(one.deployment.get("max_num_seqs", 256) - 40) for one in journal)
    assert best <= 40
