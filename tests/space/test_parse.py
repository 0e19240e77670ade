"""The YAML form of a space: what it means and how its faults are told."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import SpaceConfig
from sweeper.errors import ConfigError
from sweeper.space.model import Parameter, Space
from sweeper.space.parse import parse_space


def parse(parameters: dict[str, Any], **rest: Any) -> Space:
    return parse_space(SpaceConfig(parameters=parameters, **rest))


def parameter(name: str, form: Any) -> Parameter:
    return parse({name: form})[name]


@pytest.mark.parametrize(
    ("name", "choices", "expected", "default"),
    [
        ("quantization", ["fp8_per_tensor"], ("default", "fp8_per_tensor"), "default"),
        ("quantization", ["fp8_per_tensor", "none"], ("fp8_per_tensor", "none"), "none"),
        ("kv_cache_dtype", ["auto", "fp8"], ("auto", "fp8"), "auto"),
        ("max_num_seqs", [8, 64], ("default", 8, 64), "default"),
        ("max_num_seqs", [None, 8], ("default", 8), "default"),
        ("max_model_len", ["auto", 1024], ("default", "auto", 1024), "default"),
        ("flag.load_format", ["auto", "none"], ("auto", "none"), "none"),
    ],
)
def test_the_engines_default_is_always_a_choice(
    name: str, choices: list[Any], expected: tuple[Any, ...], default: str
) -> None:
    found = parameter(name, {"choices": choices})
    assert (found.choices, found.default) == (expected, default)


def test_fields_of_recipes_are_parameters_of_their_own() -> None:
    space = parse({"quantize": {"group_size": [-1, 32], "symmetric": [False]}})
    assert space["quantize.group_size"].choices == ("default", -1, 32)
    assert space["quantize.symmetric"].choices == ("default", False)
    for name, choices, said in (
        ("quantize.bits", [-1], "not a whole number"),
        ("quantize.group_size", [-2], "not a whole number"),
        ("quantize.symmetric", ["yes"], "neither true nor false"),
        ("quantize.bitz", [4], "unknown parameter"),
    ):
        with pytest.raises(ConfigError, match=said):
            parse({name: choices})


def test_a_default_that_is_named_is_added_to_the_choices() -> None:
    found = parameter("tensor_parallel_size", {"choices": [2, 4], "default": 1})
    assert found.choices == (1, 2, 4)
    assert found.is_default(1)


def test_a_plain_list_means_choices() -> None:
    assert parameter("block_size", [16, 32]) == parameter("block_size", {"choices": [16, 32]})


def test_what_the_engine_needs_gets_no_default() -> None:
    space = parse(
        {
            "speculative": ["none", "ngram"],
            "num_speculative_tokens": {"choices": [3, 5], "when": {"speculative": ["ngram"]}},
        }
    )
    tokens = space["num_speculative_tokens"]
    assert (tokens.choices, tokens.required) == ((3, 5), True)
    assert not tokens.is_default(3)


def test_ranges() -> None:
    found = parameter("max_num_seqs", {"low": 8, "high": 100, "step": 8, "default": 64})
    assert (found.kind, found.high) == ("int", 96)
    assert found.values == tuple(range(8, 97, 8))
    assert (
        parameter("gpu_memory_utilization", {"low": 0.5, "high": 1, "default": 0.9}).kind == "float"
    )
    forced = parameter(
        "gpu_memory_utilization", {"low": 1, "high": 1, "default": 1, "type": "float"}
    )
    assert forced.kind == "float"


def test_parents_stand_before_their_children() -> None:
    space = parse(
        {
            "flag.c": {"choices": ["x"], "when": {"flag.b": ["x"]}},
            "flag.b": {"choices": ["x"], "when": {"flag.a": ["x"]}},
            "flag.a": {"choices": ["x"]},
        }
    )
    assert space.names == ("flag.a", "flag.b", "flag.c")


def test_flags_can_be_nested() -> None:
    space = parse(
        {"flag": {"x": [1, 2]}, "env": {"Y": {"choices": ["a"]}}}, fixed={"flag": {"z": 1}}
    )
    assert set(space.names) == {"flag.x", "env.Y"}
    assert space.fixed == {"flag.z": 1}


def test_fixed_values_that_say_the_default_are_left_out() -> None:
    fixed = {"quantization": "none", "kv_cache_dtype": "auto", "max_model_len": "auto"}
    assert parse({"max_num_seqs": [8]}, fixed=fixed).fixed == {"max_model_len": "auto"}


def test_seeds_are_partial_and_written_in_the_spaces_values() -> None:
    space = parse(
        {"max_num_seqs": [8, 64], "quantization": ["none", "awq"]},
        seeds=[{"max_num_seqs": 8.0}, {"quantization": "default"}, {}],
    )
    assert space.seeds == ({"max_num_seqs": 8}, {"quantization": "none"}, {})


SPEC = {
    "speculative": ["none", "ngram"],
    "num_speculative_tokens": {"choices": [2], "when": {"speculative": ["ngram"]}},
}
SEQS = {"max_num_seqs": [8]}
FAULTS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"max_num_seqs": {"choices": []}}, {}, "max_num_seqs: choices is empty", "at least one"),
    ({"max_num_seqs": []}, {}, "choices is empty", "at least one"),
    ({"max_num_seqs": {"choices": 8}}, {}, "not a list", "choices"),
    ({"max_num_seqs": 8}, {}, "neither", "space.fixed.max_num_seqs=8"),
    ({"max_num_seqs": {}}, {}, "low is missing", "low"),
    ({"max_num_seq": [8]}, {}, "max_num_seq", "max_num_seqs"),
    ({"swap_space": [8]}, {}, "swap_space", "flag.swap_space"),
    ({"flag.": [8]}, {}, "flag.", "parameters"),
    ({"max_num_seqs": {"choises": [8]}}, {}, "choises", "low"),
    ({"max_num_seqs": {"choices": [8], "defualt": 8}}, {}, "defualt", "default"),
    ({"max_num_seqs": {"choices": [8, 8]}}, {}, "twice", "once"),
    ({"flag.x": {"choices": [True, 1]}}, {}, "twice", "once"),
    ({"quantization": ["none", "default"]}, {}, "both mean", "one"),
    ({"quantization": {"choices": ["none", "awq"], "default": "awq"}}, {}, "both mean", "one"),
    ({"max_num_seqs": ["eight"]}, {}, "eight", "numbers"),
    ({"max_num_seqs": [0]}, {}, "whole number", "1 or more"),
    ({"max_num_seqs": [1.5]}, {}, "whole number", "1 or more"),
    ({"max_num_seqs": [[1]]}, {}, "single value", "text"),
    ({"gpu_memory_utilization": [1.5]}, {}, "share", "up to 1"),
    ({"gpu_memory_utilization": {"low": 0.5, "high": 2, "default": 0.9}}, {}, "share", "up to 1"),
    ({"enforce_eager": ["yes"]}, {}, "true nor false", "true or false"),
    ({"speculative": ["none", "ngrm"]}, {}, "ngrm", "ngram"),
    ({"max_num_seqs": {"low": 9, "high": 1, "default": 2}}, {}, "above high", "swap"),
    ({"max_num_seqs": {"low": 1, "high": 9}}, {}, "needs default", "default"),
    ({"max_num_seqs": {"low": 1, "high": 9, "default": 10}}, {}, "default 10", "default"),
    ({"max_num_seqs": {"low": 1, "high": 9, "step": 4, "default": 2}}, {}, "default 2", "default"),
    ({"max_num_seqs": {"low": 1, "high": 9, "step": 0, "default": 2}}, {}, "step 0", "positive"),
    ({"max_num_seqs": {"low": "a", "high": 9, "default": 2}}, {}, "'a'", "number"),
    ({"flag.x": {"low": 0, "high": 9, "default": 2, "log": True}}, {}, "above 0", "log"),
    (
        {"flag.x": {"low": 1, "high": 9, "default": 1, "log": True, "step": 2}},
        {},
        "exclude",
        "choices",
    ),
    ({"flag.x": {"low": 0.5, "high": 9, "default": 2, "type": "int"}}, {}, "fractional", "whole"),
    ({"flag.x": {"low": 1, "high": 9, "default": 2, "type": "word"}}, {}, "word", "int"),
    ({"flag.x": {"choices": [1], "when": {"flag.y": [1]}}}, {}, "flag.y", "space.parameters"),
    ({**SEQS, "flag.x": {"choices": [1], "when": {"max_num_seqs": [9]}}}, {}, "never 9", "choices"),
    ({**SEQS, "flag.x": {"choices": [1], "when": {"max_num_seqs": []}}}, {}, "no values", "drop"),
    ({"flag.x": {"choices": [1], "when": 5}}, {}, "mapping", "when"),
    (
        {
            "flag.x": {"choices": [1], "when": {"flag.y": [1]}},
            "flag.y": {"choices": [1], "when": {"flag.x": [1]}},
        },
        {},
        "circle",
        "when",
    ),
    ({"speculative": ["none"], "num_speculative_tokens": ["default", 2]}, {}, "no default", "out"),
    (SEQS, {"fixed": {"max_num_seqs": 8}}, "both", "one"),
    (SEQS, {"fixed": {"blocksize": 8}}, "blocksize", "block_size"),
    (SEQS, {"fixed": {"block_size": [16, 32]}}, "one value", "space.parameters.block_size"),
    (SEQS, {"fixed": {"gpu_memory_utilization": 3}}, "share", "up to 1"),
    (SEQS, {"seeds": [{"max_num_seq": 8}]}, "seeds[0]", "max_num_seqs"),
    (SEQS, {"seeds": [{}, {"max_num_seqs": 9}]}, "seeds[1]", "space.seeds=[]"),
    (SEQS, {"seeds": [5]}, "mapping", "parameter: value"),
    (SPEC, {"seeds": [{"num_speculative_tokens": 2}]}, "only exists when speculative", "seed"),
]


@pytest.mark.parametrize(("parameters", "rest", "said", "way_out"), FAULTS)
def test_faults(parameters: dict[str, Any], rest: dict[str, Any], said: str, way_out: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(parameters, **rest)
    assert said in caught.value.message
    assert way_out in caught.value.remedy
