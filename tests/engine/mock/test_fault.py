"""What a fault says of itself, and for which launches it is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engine.mock.fault import CHILDREN, GARBAGE, STAGES, Fault, read_fault
from sweeper.engine.mock.faults import Faults
from sweeper.errors import ConfigError


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ({"die_at": "begin"}, "die_at"),
        ({"hang_at": "end"}, "hang_at"),
        ({"garbage_at": "start"}, "garbage_at"),
        ({"garbage": "rubbish"}, "garbage"),
        ({"child": "orphan"}, "child"),
        ({"log_encoding": "klingon"}, "log_encoding"),
        ({"log_text": "日本", "log_encoding": "latin-1"}, "log_encoding"),
        ({"dye_at": "start"}, "dye_at"),
    ],
)
def test_what_is_no_fault_is_refused_by_its_name(fault: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_fault(fault)
    assert named in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_can_be_named(stage: str) -> None:
    assert read_fault({"die_at": stage, "hang_at": stage}).die_at == stage


def test_every_kind_is_documented() -> None:
    from sweeper.engine.mock import children, garbage

    assert all(kind in (children.__doc__ or "") for kind in CHILDREN)
    for kind in GARBAGE:
        garbage.garbage_answer(kind, stream=True)


def test_a_fault_is_for_the_deployments_it_names() -> None:
    fault = Fault(when={"quantization": ["fp8", "default"], "block_size": 16})
    assert fault.strikes({"block_size": 16})
    assert fault.strikes({"block_size": 16, "quantization": "fp8"})
    assert not fault.strikes({"block_size": 16, "quantization": "awq"})
    assert not fault.strikes({})


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.integers(1, 3), st.text(max_size=8))
def test_chance_depends_on_seed_number_and_attempt_alone(
    seed: int, number: int, attempt: int, token: str
) -> None:
    fault = Fault(chance=0.5, seed=seed)
    launch = f"trial-{number}-{attempt}"
    assert fault.strikes({}, f"{launch}-{token.replace('-', '')}") is fault.strikes({}, launch)


def test_chance_is_a_share_of_the_launches() -> None:
    for chance in (0.0, 0.1, 0.5, 1.0):
        fault = Fault(chance=chance, seed=7)
        struck = sum(fault.strikes({}, f"trial-{n}-1-x") for n in range(2000)) / 2000
        assert struck == pytest.approx(chance, abs=0.03)


def test_two_seeds_strike_different_launches() -> None:
    def struck(seed: int) -> list[bool]:
        fault = Fault(chance=0.5, seed=seed)
        return [fault.strikes({}, f"trial-{n}-1-x") for n in range(50)]

    assert struck(1) != struck(2)
    assert struck(1) == struck(1)


def test_once_is_for_the_first_launch_only(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    faults = [Fault(no_usage=True, once=str(mark))]
    assert Faults.of(faults, {}, "trial-0-1-x").no_usage
    assert mark.exists()
    assert not Faults.of(faults, {}, "trial-0-2-x").no_usage


def test_what_is_pretended_is_told_and_not_followed() -> None:
    faults = Faults([Fault(ignores=["block_size"], pretends=["max_num_seqs"])])
    asked = {"block_size": 32, "max_num_seqs": 4, "dtype": "auto"}
    assert faults.told(asked) == {"max_num_seqs": 4, "dtype": "auto"}
    assert faults.followed(asked) == {"dtype": "auto"}
