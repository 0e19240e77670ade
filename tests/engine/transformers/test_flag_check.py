"""Flags and values of the transformers engine's own server, known without asking anybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sweeper.config.schema import SpaceConfig, SweeperConfig
from sweeper.engine.flag_check import AskedFlag
from sweeper.engine.transformers.flags import check
from sweeper.space.parse import parse_space
from sweeper.verbs.flags_checked import asked_flags

SPACES = sorted((Path(__file__).parents[3] / "conf" / "space").glob("transformers*.yaml"))


def problem(name: str, value: Any) -> str:
    found = check([AskedFlag(f"engine.args.{name}", f"flag.{name}", value)]).refusals
    return f"{found[0].problem.cause}; {found[0].problem.remedy}" if found else ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dtype", "bfloat16"),
        ("batching", "static"),
        ("max_num_seqs", 4),
        ("compile", True),
        ("quantization", "compressed-tensors"),
    ],
)
def test_what_it_takes(name: str, value: Any) -> None:
    assert problem(name, value) == ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("tensor_parallel_size", 2, "has no flag --tensor-parallel-size"),
        ("max_num_seq", 2, "did you mean max_num_seqs"),
        ("dtype", "int8", "use one of auto, bfloat16"),
        ("batching", "statik", "static"),
        ("max_num_seqs", 0, "whole number from 1"),
        ("gpu_memory_utilization", 1.5, "share"),
        ("compile", "yes", "true or false"),
        ("max_num_seqs", True, "needs a value"),
        ("no_compile", True, "has no flag"),
        ("port", 1, "set by every launch"),
        ("quantization", "awq", "has no flag --quantization"),
    ],
)
def test_what_it_does_not(name: str, value: Any, words: str) -> None:
    assert words in problem(name, value)


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_its_own_spaces_fit(path: Path) -> None:
    cfg = SweeperConfig()
    cfg.engine.args = {}
    cfg.space = SpaceConfig(**yaml.safe_load(path.read_text()))
    assert check(asked_flags(cfg, parse_space(cfg.space))).refusals == ()
