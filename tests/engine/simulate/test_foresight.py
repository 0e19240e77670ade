"""What of a space is left where nothing is known of some parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import SpaceConfig
from sweeper.engine.modelling import Foreseen
from sweeper.engine.simulate.foresight import within
from sweeper.estimate.simulator.modelled import MODELLED, UNMODELLED
from sweeper.space.parse import parse_space
from sweeper.verdicts import Diagnosis, Phase, Verdict

SPACE = {
    "quantization": {"choices": ["none", "fp8_per_tensor", "awq"]},
    "kv_cache_dtype": {"choices": ["auto", "fp8"]},
    "max_num_seqs": {"choices": ["default", 64, 128]},
    "speculative": {"choices": ["none", "ngram", "eagle"]},
    "num_speculative_tokens": {"choices": [3, 7], "when": {"speculative": ["ngram", "eagle"]}},
    "enable_prefix_caching": {"choices": ["default", False]},
    "enforce_eager": {"choices": [False, True], "default": False},
}


def lacking(rule: str) -> Diagnosis:
    return Diagnosis(Verdict.UNKNOWN, Phase.START, "never timed", "", learnt={"rule": rule})


def try_out(parameters: Mapping[str, Any]) -> Diagnosis | None:
    if parameters.get("quantization") == "awq":
        return lacking("simulated_gap")
    return lacking("unmodelled") if parameters.get("speculative") == "eagle" else None


def foreseen(*, acceptance: bool = False, repeats: bool = False, **changes: Any) -> Foreseen:
    space = parse_space(SpaceConfig(parameters=dict(SPACE), **changes))
    return within(space, try_out, repeats_prompts=repeats, acceptance_known=acceptance)


def test_what_changes_nothing_is_fixed_and_said_once() -> None:
    found = foreseen()
    assert found.space.names == ("quantization", "kv_cache_dtype", "max_num_seqs")
    fixed, lost = found.notes
    for name in ("speculative", "enable_prefix_caching", "enforce_eager"):
        assert f"{name} (" in fixed
    assert lost == "quantization=awq is left out: never timed"
    assert found.space["quantization"].choices == ("none", "fp8_per_tensor")


def test_speculation_is_searched_once_its_acceptance_is_known() -> None:
    found = foreseen(acceptance=True)
    assert found.space["speculative"].choices == ("none", "ngram")
    assert found.space["num_speculative_tokens"].choices == (3,)
    assert any(note.startswith("num_speculative_tokens=7 is left out") for note in found.notes)


def test_prefix_caching_is_searched_where_prompts_repeat() -> None:
    assert "enable_prefix_caching" in foreseen(repeats=True).space.names


def test_seeds_stay_as_far_as_they_can_be_predicted() -> None:
    seeds: list[Any] = [
        {"quantization": "fp8_per_tensor", "enforce_eager": True},
        {"quantization": "fp8_per_tensor"},
        {"quantization": "awq"},
        {"enforce_eager": True},
    ]
    assert foreseen(seeds=seeds).space.seeds == ({"quantization": "fp8_per_tensor"},)


def test_what_exists_only_under_a_fixed_parameter_goes_with_it() -> None:
    eager = {"choices": [False, True], "default": False}
    batch = {"choices": ["default", 64], "when": {"enforce_eager": [True]}}
    space = parse_space(SpaceConfig(parameters={"enforce_eager": eager, "max_num_seqs": batch}))
    found = within(space, try_out, repeats_prompts=False, acceptance_known=False)
    assert not found.space.parameters
    assert "max_num_seqs (it exists only under enforce_eager)" in found.notes[0]


def test_a_users_own_fixed_value_is_said_too() -> None:
    parameters = {"max_num_seqs": [64, 128]}
    space = parse_space(
        SpaceConfig(
            parameters=parameters, fixed={"flag.async_scheduling": True, "dtype": "float16"}
        )
    )
    found = within(space, try_out, repeats_prompts=False, acceptance_known=False)
    assert not found.space.fixed
    assert "flag.async_scheduling (the simulator has no model of it)" in found.notes[0]


def test_a_capacity_fault_of_one_value_is_a_trials_end() -> None:
    space = parse_space(SpaceConfig(parameters={"quantization": ["none", "fp8"]}))
    full = Diagnosis(Verdict.CAPACITY, Phase.START, "full", "", learnt={"rule": "simulated_memory"})
    found = within(space, lambda _: full, repeats_prompts=False, acceptance_known=False)
    assert found.space["quantization"].choices == ("none", "fp8")


def test_no_parameter_is_both_modelled_and_not() -> None:
    assert not MODELLED & set(UNMODELLED)


@given(
    st.lists(st.sampled_from(sorted(SPACE)), min_size=1, unique=True), st.booleans(), st.booleans()
)
def test_children_never_outlive_their_parents(
    names: list[str], acceptance: bool, repeats: bool
) -> None:
    kept = {n: SPACE[n] for n in SPACE if n in names}
    if "num_speculative_tokens" in kept and "speculative" not in kept:
        return
    space = parse_space(SpaceConfig(parameters=kept))
    found = within(space, try_out, repeats_prompts=repeats, acceptance_known=acceptance).space
    assert all(set(parameter.when) <= set(found.names) for parameter in found.parameters)
    assert set(found.names) <= MODELLED
