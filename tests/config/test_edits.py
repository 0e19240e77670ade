"""Changing a shipped space from the command line keeps it consistent."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.errors import ConfigError
from sweeper.space.canonical import canonical
from sweeper.space.model import Space
from sweeper.space.parse import parse_space


def space_of(*overrides: str) -> Space:
    return parse_space(compose(list(overrides)).space)


@pytest.mark.parametrize(
    ("override", "choices"),
    [
        ("space.parameters.block_size.choices=[16,32]", ("default", 16, 32)),
        ("space.parameters.block_size=[16,32]", ("default", 16, 32)),
        ("+space.parameters.block_size=[16,32]", ("default", 16, 32)),
        ("space.parameters.block_size={choices:[16],default:16}", (16,)),
    ],
)
def test_choices_can_be_replaced(override: str, choices: tuple[Any, ...]) -> None:
    assert space_of(override)["block_size"].choices == choices


def test_a_range_replaces_choices_instead_of_mixing_with_them() -> None:
    parameter = space_of("space.parameters.max_num_seqs={low:1,high:64,default:8}")["max_num_seqs"]
    assert (parameter.kind, parameter.low, parameter.high, parameter.default) == ("int", 1, 64, 8)


def test_flags_and_environment_variables_can_be_searched() -> None:
    space = space_of(
        "space.parameters.flag.stream_interval=[1,4]",
        "space.parameters.env.OMP_NUM_THREADS.choices=[default,1,2]",
    )
    assert space["flag.stream_interval"].choices == ("default", 1, 4)
    assert space["env.OMP_NUM_THREADS"].choices == ("default", 1, 2)


def test_a_dotted_parameter_of_a_shipped_space_is_edited_in_place() -> None:
    space = space_of("space.parameters.env.VLLM_CPU_OMP_THREADS_BIND.choices=[default,'0']")
    assert space["env.VLLM_CPU_OMP_THREADS_BIND"].choices == ("default", "0")


def test_removing_a_parameter_leaves_it_at_the_engines_default() -> None:
    space = space_of("~space.parameters.quantization")
    assert "quantization" not in space.names
    # dtype only exists without quantization, which now always holds
    assert canonical(space, {"dtype": "float32"})["dtype"] == "float32"
    assert all("quantization" not in seed for seed in space.seeds)


def test_fixing_a_parameter_takes_it_out_of_the_search() -> None:
    space = space_of("space.fixed.kv_cache_dtype=fp8")
    assert "kv_cache_dtype" not in space.names
    assert canonical(space, {})["kv_cache_dtype"] == "fp8"


def test_searching_a_fixed_parameter_frees_it() -> None:
    space = space_of("space.parameters.enforce_eager=[false,true]")
    assert "enforce_eager" in space.names
    assert "enforce_eager" not in space.fixed


def test_seeds_that_the_edit_contradicts_are_dropped() -> None:
    before = space_of("space=gpu")
    after = space_of("space=gpu", "space.parameters.quantization=[none]")
    kept = [seed for seed in before.seeds if "quantization" not in seed]
    assert 0 < len(kept) < len(before.seeds)
    assert len(after.seeds) == len(kept)


def test_seeds_the_user_gave_are_checked_not_dropped() -> None:
    with pytest.raises(ConfigError, match=r"seeds\[0\]"):
        space_of("space.parameters.quantization=[none]", "space.seeds=[{quantization:awq}]")
