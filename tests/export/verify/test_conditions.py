"""What is not as it was when the promise was measured, on values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweeper.export.verify.conditions import arguments, busy, changed_effects
from sweeper.export.verify.files import Exported

EXPORTED = Exported(Path("vllm.yaml"), "m", None, ("m",), {"max_num_seqs": 8, "seed": 0})


def manifest(**effective: Any) -> dict[str, Any]:
    return {"effective_args": effective}


def test_what_nobody_gave_and_is_in_effect_otherwise_is_a_change() -> None:
    then = manifest(enable_prefix_caching=True, dtype="bfloat16", max_num_seqs=8, num_kv_blocks=9)
    now = manifest(enable_prefix_caching=False, dtype="bfloat16", max_num_seqs=4, num_kv_blocks=7)
    assert changed_effects(then, now, EXPORTED) == {
        "in effect: enable_prefix_caching": (True, False)
    }


def test_two_spellings_of_one_value_are_no_change() -> None:
    assert changed_effects(manifest(dtype="half"), manifest(dtype="HALF"), EXPORTED) == {}
    assert changed_effects(manifest(), manifest(seed=1), EXPORTED) == {}
    assert changed_effects({}, {}, EXPORTED) == {}


def test_arguments_are_told_apart_by_whether_the_server_tells_them() -> None:
    found = {one.name: (one.in_effect, one.told) for one in arguments(EXPORTED, {"seed": 0})}
    assert found == {"max_num_seqs": (None, False), "seed": (0, True)}
    assert arguments(EXPORTED, None) == (), "no server came up to ask"


def test_others_on_the_machine_are_told_where_they_matter() -> None:
    assert busy(0.4, 2) == "" and busy(20.0, 128) == ""
    assert "2 cores" in busy(9.5, 2)
