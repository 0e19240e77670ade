from __future__ import annotations

import random

import pytest

from sweeper.config.schema import SpaceConfig
from sweeper.estimate.violation import Violation
from sweeper.search.policy.open import POOL, Open, neighbours, values_of
from sweeper.search.policy.walk import Walk, at
from sweeper.space.canonical import canonical, deployment_hash, enumerate_canonical
from sweeper.space.parse import parse_space
from tests.search.policy.toy import SIZE, SPACE

RANGES = parse_space(
    SpaceConfig(
        name="ranges",
        parameters={
            "max_num_seqs": {"low": 1, "high": 1024, "default": 256, "log": True},
            "max_num_batched_tokens": {"low": 512, "high": 8192, "step": 512, "default": 2048},
            "gpu_memory_utilization": {"low": 0.5, "high": 0.9, "default": 0.9},
        },
    )
)


def test_what_was_refused_once_is_not_asked_again_until_the_rules_change() -> None:
    asked: list[dict[str, object]] = []
    era = [0]

    def check(deployment: object) -> list[Violation]:
        asked.append(dict(deployment))  # type: ignore[call-overload]
        return [Violation("r", "no", "leave it", ())] if era[0] == 0 else []

    open_ = Open(SPACE, check, era=lambda: era[0])
    digest = deployment_hash({})
    assert not open_.is_fit(digest, {})
    assert not open_.is_fit(digest, {})
    assert len(asked) == 1
    era[0] = 1
    assert open_.is_fit(digest, {})


def test_a_space_is_listed_whole_or_drawn_from_with_the_neighbours_of_the_best() -> None:
    chance = random.Random(1)
    assert len(Open(SPACE, lambda _: []).pool({deployment_hash({})}, [], chance)) == SIZE - 1
    best = {"max_num_seqs": 40}
    drawn = Open(RANGES, lambda _: []).pool((), [best], chance)
    assert len(drawn) > 0.9 * POOL
    assert {deployment_hash(one) for one in neighbours(RANGES, best)} <= set(drawn)


def test_neighbours_differ_in_one_parameter() -> None:
    found = neighbours(SPACE, {"speculative": "ngram", "num_speculative_tokens": 4})
    assert {"speculative": "ngram", "num_speculative_tokens": 2} in found
    assert {} in found
    everything = enumerate_canonical(SPACE, 1000) or []
    assert all(one in everything for one in found)


@pytest.mark.parametrize("name", RANGES.names)
def test_shares_of_a_range_are_values_of_it(name: str) -> None:
    parameter = RANGES[name]
    values = [at(parameter, share / 20) for share in range(21)]
    assert values[0] == parameter.low
    assert values == sorted(values)
    for value in [*values, *values_of(parameter)]:
        assert canonical(RANGES, {name: value}).get(name, parameter.default) == value
    assert at(parameter, 1.0) == parameter.high


def test_a_walk_is_the_same_for_a_seed_and_covers_a_small_space() -> None:
    first, again = (list(Walk(SPACE, 3, SIZE)) for _ in range(2))
    assert first == again
    assert [one for one, _ in first] != [one for one, _ in Walk(SPACE, 4, SIZE)]
    assert len({digest for digest, _ in first}) >= 0.8 * SIZE
    assert len({digest for digest, _ in first[:16]}) >= 12
