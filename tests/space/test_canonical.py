"""Equal deployments have one form; what differs only in closed branches or defaults is equal."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.schema import SpaceConfig
from sweeper.space.canonical import (
    active,
    baseline,
    canonical,
    deployment_hash,
    enumerate_canonical,
    exists,
    size,
)
from sweeper.space.model import Raw, Space
from sweeper.space.parse import parse_space
from tests.space.strategies import spaces, spaces_with_coordinates

QUICK = settings(max_examples=40, deadline=None)  # the machine may be busy
SPECULATION = parse_space(
    SpaceConfig(
        name="s",
        fixed={"enforce_eager": True, "quantization": "none"},
        parameters={
            "speculative": {"choices": ["none", "ngram"]},
            "num_speculative_tokens": {"choices": [2, 4], "when": {"speculative": ["ngram"]}},
            "max_num_seqs": {"choices": ["default", 8]},
            "gpu_memory_utilization": {"choices": [0.9, 0.92], "default": 0.92},
        },
    )
)


def recipes(**own: int) -> Space:
    """A space that searches the group size of two recipes, which have their own."""
    parsed = parse_space(
        SpaceConfig(
            name="s",
            parameters={
                "quantization": ["none", "awq", "w4a16"],
                "quantize.group_size": {
                    "choices": [32, 64],
                    "when": {"quantization": ["awq", "w4a16"]},
                },
                "max_num_seqs": ["default", 8],
            },
        )
    )
    parameters = [replace(p, own=own) if "." in p.name else p for p in parsed.parameters]
    return replace(parsed, parameters=tuple(parameters))


def test_a_recipes_own_value_says_nothing_and_anothers_does() -> None:
    space = recipes(awq=64, w4a16=128)
    asked = {"quantization": "awq", "quantize.group_size": 64}
    assert canonical(space, asked) == {"quantization": "awq"}
    assert canonical(space, {**asked, "quantize.group_size": 32})["quantize.group_size"] == 32
    assert canonical(space, {**asked, "quantization": "w4a16"})["quantize.group_size"] == 64
    assert "quantize.group_size" not in canonical(space, {"quantize.group_size": 32})


def test_deployments_with_a_recipes_own_value_are_counted_once() -> None:
    for space, count in ((recipes(), 2 * 7), (recipes(awq=64), 2 * 6), (recipes(awq=128), 2 * 7)):
        listed = enumerate_canonical(space, 100)
        assert listed is not None
        assert size(space) == count == len(listed)
        assert len({deployment_hash(one) for one in listed}) == count


@QUICK
@given(spaces_with_coordinates())
def test_canonical_of_canonical_is_itself(drawn: tuple[Space, Raw]) -> None:
    space, raw = drawn
    once = canonical(space, raw)
    assert canonical(space, once) == once


@QUICK
@given(spaces_with_coordinates(), st.randoms(use_true_random=False))
def test_order_of_keys_does_not_matter(drawn: tuple[Space, Raw], draw: random.Random) -> None:
    space, raw = drawn
    names = list(raw)
    draw.shuffle(names)
    shuffled = {name: raw[name] for name in names}
    assert list(canonical(space, shuffled).items()) == list(canonical(space, raw).items())
    assert deployment_hash(shuffled) == deployment_hash(raw)


@QUICK
@given(spaces_with_coordinates(), st.data())
def test_values_in_closed_branches_do_not_matter(
    drawn: tuple[Space, Raw], data: st.DataObject
) -> None:
    space, raw = drawn
    closed = set(space.names) - set(active(space, raw))
    other = dict(raw)
    for name in closed:
        other[name] = data.draw(st.sampled_from(space[name].values or ()))
    assert canonical(space, other) == canonical(space, raw)


@QUICK
@given(spaces_with_coordinates())
def test_saying_a_default_or_leaving_it_out_is_the_same(drawn: tuple[Space, Raw]) -> None:
    space, raw = drawn
    spoken = {n: v for n, v in raw.items() if v != space[n].default}
    assert canonical(space, spoken) == canonical(space, raw)
    assert not any(
        space[n].is_default(v) for n, v in canonical(space, raw).items() if n in space.names
    )


@QUICK
@given(spaces())
def test_the_enumeration_is_complete_distinct_and_as_long_as_the_size(space: Space) -> None:
    everything = enumerate_canonical(space, 10**6)
    assert everything is not None
    hashes = {deployment_hash(deployment) for deployment in everything}
    assert len(everything) == len(hashes) == size(space)
    assert deployment_hash(canonical(space, baseline(space))) in hashes
    brute = itertools.islice(itertools.product(*(p.values or () for p in space.parameters)), 200)
    for values in brute:
        assert (
            deployment_hash(canonical(space, dict(zip(space.names, values, strict=True)))) in hashes
        )


@QUICK
@given(spaces_with_coordinates())
def test_a_deployment_is_plain_json(drawn: tuple[Space, Raw]) -> None:
    space, raw = drawn
    deployment = canonical(space, raw)
    assert json.loads(json.dumps(deployment)) == deployment


def test_the_baseline_is_only_what_is_fixed() -> None:
    assert canonical(SPECULATION, baseline(SPECULATION)) == {"enforce_eager": True}
    assert canonical(SPECULATION, {}) == {"enforce_eager": True}


def test_what_the_engine_has_no_default_for_is_always_given() -> None:
    deployment = canonical(SPECULATION, {"speculative": "ngram"})
    assert deployment == {
        "enforce_eager": True,
        "num_speculative_tokens": 2,
        "speculative": "ngram",
    }


def test_a_closed_parent_closes_its_children() -> None:
    space = parse_space(
        SpaceConfig(
            parameters={
                "flag.c": {"choices": ["x", "y"], "when": {"flag.b": ["u"]}},
                "flag.b": {"choices": ["u", "v"], "default": "u", "when": {"flag.a": ["on"]}},
                "flag.a": {"choices": ["off", "on"], "default": "off"},
            }
        )
    )
    assert active(space, {"flag.a": "off", "flag.c": "x"}) == {"flag.a": "off"}
    assert "flag.c" in active(space, {"flag.a": "on"})
    assert size(space) == 1 + (3 + 1)


@pytest.mark.parametrize("fixed", [{"speculative": "ngram"}, {"speculative": "none"}])
def test_a_fixed_parent_opens_or_closes_the_branch(fixed: dict[str, Any]) -> None:
    space = parse_space(
        SpaceConfig(
            fixed=fixed,
            parameters={
                "num_speculative_tokens": {"choices": [2, 4], "when": {"speculative": ["ngram"]}},
                "dtype": {"choices": ["default", "float32"], "when": {"speculative": ["none"]}},
            },
        )
    )
    is_open = fixed["speculative"] == "ngram"
    assert exists(space, space["num_speculative_tokens"], {}) is is_open
    assert exists(space, space["dtype"], {}) is not is_open


def test_numbers_are_written_as_the_space_writes_them() -> None:
    assert canonical(SPECULATION, {"max_num_seqs": 8.0})["max_num_seqs"] == 8
    assert isinstance(canonical(SPECULATION, {"max_num_seqs": 8.0})["max_num_seqs"], int)


@pytest.mark.parametrize(
    "raw",
    [{"block_size": 16}, {"max_num_seqs": 9}, {"enforce_eager": False}, {"max_num_seqs": True}],
)
def test_what_is_not_of_the_space_is_refused(raw: Raw) -> None:
    with pytest.raises(ValueError, match=next(iter(raw))):
        canonical(SPECULATION, raw)


def test_a_continuum_has_no_size_and_a_large_space_no_list() -> None:
    continuous = parse_space(
        SpaceConfig(
            parameters={"gpu_memory_utilization": {"low": 0.5, "high": 0.9, "default": 0.9}}
        )
    )
    assert size(continuous) is None
    assert enumerate_canonical(continuous, 10) is None
    assert enumerate_canonical(SPECULATION, 5) is None


def test_the_hash_is_stable_across_versions() -> None:
    """A changed hash would make every finished study repeat its trials."""
    assert deployment_hash({"a": 1, "b": [True, "x"]}) == deployment_hash(
        {"b": [True, "x"], "a": 1}
    )
    assert deployment_hash({}) == "44136fa355b3"
