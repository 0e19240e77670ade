"""The default of a space and its ends in terms of memory."""

from __future__ import annotations

from itertools import product
from typing import Any

from sweeper.config.schema import SpaceConfig
from sweeper.estimate.corners import DEFAULT, LEAST_ROOM, MOST_ROOM, corners, in_words
from sweeper.estimate.memory import MemoryVerdict, verdict
from sweeper.space.canonical import canonical
from sweeper.space.model import Raw, Space
from sweeper.space.parse import parse_space
from tests.estimate.facts import H100, QWEN7B


def space(**parameters: Any) -> Space:
    return parse_space(SpaceConfig(parameters=parameters))


def weigh(deployment: Raw) -> MemoryVerdict | None:
    if deployment.get("tensor_parallel_size") == 8:
        return None
    return verdict(deployment, QWEN7B, H100)


CHOICES: dict[str, list[Any]] = {
    "tensor_parallel_size": [1, 2, 8],
    "quantization": ["none", "awq"],
    "max_model_len": [2048, 32_768],
    "kv_cache_dtype": ["auto", "fp8"],
    "enforce_eager": [False, True],
    "gpu_memory_utilization": [0.5, 0.95],
}


def test_the_ends_are_the_ends_of_the_whole_space() -> None:
    made = space(**CHOICES)
    found = {corner.name: corner for corner in corners(made, weigh)}
    assert list(found) == [DEFAULT, MOST_ROOM, LEAST_ROOM]

    def room(memory: MemoryVerdict) -> float:
        return (memory.available_gib or 0.0) - memory.needed_gib

    rooms = [
        room(memory)
        for values in product(*(made[name].values or () for name in CHOICES))
        if (memory := weigh(canonical(made, dict(zip(CHOICES, values, strict=True)))))
    ]
    assert room(found[MOST_ROOM].memory) == max(rooms)
    assert room(found[LEAST_ROOM].memory) == min(rooms)
    assert found[MOST_ROOM].deployment["tensor_parallel_size"] == 2


def test_a_space_that_does_not_move_memory_has_one_corner() -> None:
    found = corners(space(enable_prefix_caching=[True, False]), weigh)
    assert [corner.name for corner in found] == [DEFAULT]
    assert corners(space(max_num_seqs=[8, 16]), lambda _: None) == []


def test_a_continuum_has_ends_too() -> None:
    form = {"low": 0.5, "high": 0.95, "default": 0.9}
    found = {c.name: c.deployment for c in corners(space(gpu_memory_utilization=form), weigh)}
    assert found[MOST_ROOM] == {"gpu_memory_utilization": 0.95}
    assert found[LEAST_ROOM] == {"gpu_memory_utilization": 0.5}


def test_words() -> None:
    assert in_words({"max_num_seqs": 8, "gpu_memory_utilization": 0.5}) == (
        "max_num_seqs=8 gpu_memory_utilization=0.5"
    )
    assert in_words({}) == "as it is"
