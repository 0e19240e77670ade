"""Faults of the `workload` group: each is found, named by its key, and has a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.compose import compose
from sweeper.config.location import conf_dir
from sweeper.config.schema import SweeperConfig, WorkloadConfig
from sweeper.config.workload_checks import (
    DISTRIBUTIONS,
    check_workload,
    longest_by_config,
)
from sweeper.errors import ConfigError


def config(replay: bool = False, **fields: Any) -> SweeperConfig:
    cfg = SweeperConfig(workload=WorkloadConfig(**fields))
    cfg.load.kind = "replay" if replay else "closed"
    return cfg


WIDE = {"length_distribution": "lognormal", "input_spread": 0.5}
GROUPS = {"kind": "shared_prefix", "prefix_tokens": 100}

ACCEPTED: list[dict[str, Any]] = [
    {},
    WIDE,
    {"length_distribution": "uniform", "output_spread": 1.0},
    WIDE | {"input_tokens_max": 600},
    GROUPS | {"prefix_groups": 8},
    GROUPS | WIDE,
    {"kind": "conversation", "turns": 2, "think_time_s": 3.5},
    {"kind": "standard", "output_tokens": 1024},
    {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "sampling_seed": 0},
    {"beam_width": 4},
    {"seed": 0},
]


@pytest.mark.parametrize("fields", ACCEPTED)
def test_sound_workloads_pass(fields: dict[str, Any]) -> None:
    check_workload(config(**fields))


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"input_tokens": 0}, "input_tokens=0", "1 or more"),
    ({"output_tokens": 0}, "output_tokens=0", "1 or more"),
    ({"output_tokens": 1}, "two tokens", "output_tokens=2"),
    ({"input_tokens_max": 0}, "input_tokens_max=0", "1 or more"),
    (WIDE | {"output_tokens_max": 1}, "two tokens", "output_tokens_max=2"),
    ({"input_spread": -0.1}, "negative", "input_spread=0"),
    ({"input_spread": 0.5}, "no effect", "lognormal"),
    ({"output_spread": 0.5}, "no effect", "lognormal"),
    ({"length_distribution": "normal"}, "no spread", "input_spread=0.5"),
    ({"length_distribution": "normal", "input_spread": 1.1}, "too wide", "1 or less"),
    ({"length_distribution": "uniform", "output_spread": 1.1}, "too wide", "1 or less"),
    ({"length_distribution": "lognormal", "input_spread": 4}, "too wide", "3 or less"),
    ({"input_tokens_max": 600}, "no effect", "null"),
    (WIDE | {"input_tokens_max": 512}, "no room", "input_tokens_max=564"),
    (WIDE | {"output_tokens_max": 100}, "output_tokens_max=100", "output_tokens_max=141"),
    (
        {"length_distribution": "uniform", "input_spread": 0.5, "input_tokens_max": 700},
        "below the longest of the uniform lengths, 768",
        "null",
    ),
    (
        GROUPS | {"length_distribution": "uniform", "input_spread": 0.9},
        "52 tokens",
        "lower",
    ),
    ({"kind": "shared_prefix"}, "prefix_tokens=0", "prefix_tokens=768"),
    ({"kind": "shared_prefix", "prefix_tokens": 512}, "prefix_tokens=512", "input_tokens"),
    (GROUPS | {"prefix_groups": 0}, "prefix_groups=0", "1 or more"),
    ({"prefix_tokens": 9}, "no effect on workload.kind=synthetic", "shared_prefix"),
    ({"prefix_tokens": -9}, "negative", "prefix_tokens=0"),
    ({"prefix_groups": 2}, "no effect", "shared_prefix"),
    ({"turns": 3}, "no effect", "conversation"),
    ({"think_time_s": 3.0}, "no effect", "conversation"),
    ({"kind": "conversation"}, "turns=1", "turns=2"),
    ({"kind": "conversation", "turns": 0}, "turns=0", "1 or more"),
    ({"kind": "conversation", "turns": 2, "think_time_s": -1.0}, "negative", "0 or more"),
    ({"kind": "standard", **WIDE}, "length_distribution=lognormal has no effect", "fixed"),
    ({"path": "x.jsonl"}, "no effect", "file or trace"),
    ({"format": "sharegpt"}, "no effect", "file or trace"),
    ({"max_requests": 5}, "no effect", "file or trace"),
    ({"kind": "file"}, "needs a file", "workload.path=FILE"),
    ({"kind": "file", "path": "/nowhere/x.jsonl"}, "no such file", "path"),
    ({"kind": "file", "path": "."}, "no such file", "path"),
    ({"kind": "file", "path": "x", "format": "share_gpt"}, "share_gpt", "mean sharegpt"),
    ({"kind": "file", "path": "x", "max_requests": 0}, "max_requests=0", "1 or more"),
    ({"top_p": 0.0, "temperature": 1.0}, "top_p=0.0", "above 0"),
    ({"top_p": 1.1, "temperature": 1.0}, "top_p=1.1", "at most 1"),
    ({"top_k": 0, "temperature": 1.0}, "top_k=0", "1 or more"),
    ({"sampling_seed": -1, "temperature": 1.0}, "negative", "null"),
    ({"top_p": 0.9}, "no effect on greedy", "temperature above 0"),
    ({"top_k": 9}, "no effect on greedy", "temperature above 0"),
    ({"sampling_seed": 9}, "no effect on greedy", "temperature above 0"),
    ({"beam_width": 0}, "beam_width=0", "1 or more"),
    ({"beam_width": 2, "temperature": 0.5}, "beam_width=2", "temperature=0"),
]


@pytest.mark.parametrize(("fields", "reason", "remedy"), REFUSED)
def test_faults_are_named_with_a_remedy(fields: dict[str, Any], reason: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        check_workload(config(**fields))
    assert "workload." in caught.value.message
    assert remedy in caught.value.remedy


def test_a_trace_is_replayed_and_only_a_trace_is(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    fields = {"kind": "trace", "path": str(path)}
    check_workload(config(replay=True, **fields))
    check_workload(config(replay=True, **fields, output_tokens_max=1))
    with pytest.raises(ConfigError, match=r"load\.kind=closed") as caught:
        check_workload(config(**fields))
    assert "load.kind=replay" in caught.value.remedy
    with pytest.raises(ConfigError, match="needs a recorded trace") as caught:
        check_workload(config(replay=True))
    assert "workload=trace" in caught.value.remedy
    with pytest.raises(ConfigError, match="azure") as caught:
        check_workload(config(replay=True, **fields, format="azure"))
    assert "azure_csv" in caught.value.remedy


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.jsonl").write_text("{}")
    check_workload(config(kind="file", path="~/mine.jsonl"))


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, 640),
        (WIDE, 2048 + 128),
        ({"length_distribution": "uniform", "output_spread": 0.5}, 512 + 192),
        (WIDE | {"input_tokens_max": 700}, 828),
        ({"kind": "conversation", "turns": 2}, 1268 + 128),
    ],
)
def test_the_longest_request_must_fit_the_model(fields: dict[str, Any], asked: int) -> None:
    cfg = config(**fields)
    cfg.space.fixed["max_model_len"] = asked
    check_workload(cfg)
    cfg.space.fixed["max_model_len"] = asked - 1
    with pytest.raises(ConfigError, match=f"{asked} tokens") as caught:
        check_workload(cfg)
    assert f"max_model_len={asked} or more" in caught.value.remedy


def test_only_the_file_knows_how_long_its_requests_are() -> None:
    for kind in ("file", "standard", "trace"):
        assert longest_by_config(WorkloadConfig(kind=kind)) is None


@pytest.mark.parametrize("name", sorted(path.stem for path in (conf_dir() / "workload").glob("*")))
def test_every_workload_that_comes_along_is_sound(name: str, tmp_path: Path) -> None:
    path = tmp_path / "requests"
    path.write_text("{}")
    replay = ["load.kind=replay"] if name == "trace" else []
    given_path = [f"workload.path={path}"] if name in {"file", "trace"} else []
    cfg = compose([f"workload={name}", *given_path, *replay])
    assert cfg.workload.name == name
    check_workload(cfg)


@given(
    kind=st.sampled_from(["synthetic", "conversation"]),
    distribution=st.sampled_from(DISTRIBUTIONS),
    spread=st.floats(0, 1),
    input_tokens=st.integers(1, 5000),
    turns=st.integers(1, 5),
)
def test_the_longest_is_never_below_what_was_asked_for(
    kind: str, distribution: str, spread: float, input_tokens: int, turns: int
) -> None:
    work = WorkloadConfig(
        kind=kind,
        length_distribution=distribution,
        input_spread=spread,
        input_tokens=input_tokens,
        turns=turns,
    )
    longest = longest_by_config(work)
    assert longest is not None
    assert longest[0] >= input_tokens and longest[1] == 128
