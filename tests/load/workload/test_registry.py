"""Every kind the configuration knows has its workload, and all of them keep the same promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import WorkloadConfig
from sweeper.config.workload_checks import KINDS
from sweeper.errors import ConfigError
from sweeper.load.workload.registry import WORKLOADS, create
from tests.load.workload.common import BANK, take, workload

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:17:{second:02d}.5,{100 + second},{5 + second}\n" for second in range(30)
)


@pytest.fixture(params=KINDS)
def fields(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Configuration of one workload of each kind."""
    kind = request.param
    own: dict[str, dict[str, Any]] = {
        "synthetic": {"length_distribution": "lognormal", "input_spread": 0.5},
        "shared_prefix": {"prefix_tokens": 256, "prefix_groups": 3},
        "conversation": {"turns": 3},
        "file": {"path": str(tmp_path / "requests.jsonl")},
        "trace": {"path": str(tmp_path / "trace.csv")},
    }
    lines = [json.dumps({"prompt": f"Tell me about the number {n}."}) for n in range(40)]
    (tmp_path / "requests.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "trace.csv").write_text(AZURE, encoding="utf-8")
    return {"kind": kind, **own.get(kind, {})}


def test_the_table_is_that_of_the_configuration() -> None:
    assert set(WORKLOADS) == set(KINDS)


def test_an_unknown_kind_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="sintetic") as caught:
        create(WorkloadConfig(kind="sintetic"), BANK, 1)
    assert "did you mean synthetic?" in caught.value.remedy


def test_the_same_names_give_the_same_requests(fields: dict[str, Any]) -> None:
    first, second = workload(**fields), workload(**fields)
    told = [(i.prompt, i.output_tokens, i.at_s) for i in take(first, 25)]
    assert told == [(i.prompt, i.output_tokens, i.at_s) for i in take(second, 25)]


def test_two_streams_share_no_prompt_unless_it_is_said(fields: dict[str, Any]) -> None:
    work = workload(**fields)
    one = {str(item.prompt) for item in take(work, 25, "trial-1/c1")}
    other = {str(item.prompt) for item in take(work, 25, "trial-1/c8")}
    assert len(one) == len(other) == 25
    assert (fields["kind"] == "file") == bool(one & other)
    assert work.shares_prefix or not one & other


def test_another_seed_gives_other_requests(fields: dict[str, Any]) -> None:
    one = [item.prompt for item in take(workload(**fields), 10)]
    assert one != [item.prompt for item in take(workload(**fields, seed=2), 10)]


def test_known_lengths_are_those_of_the_prompts(fields: dict[str, Any]) -> None:
    work = workload(**fields)
    for item in take(work, 25):
        assert (item.input_tokens is not None) == work.exact
        assert item.input_tokens in {None, len(item.prompt)}
        assert item.output_tokens >= 2


def test_conditions_are_plain_and_hold_no_prompt(fields: dict[str, Any], tmp_path: Path) -> None:
    work = workload(**fields)
    told = json.dumps(work.conditions, allow_nan=False)
    assert work.conditions["kind"] == fields["kind"] and work.conditions["seed"] == 1
    assert any(key.endswith("sha256") for key in work.conditions)
    assert str(tmp_path) not in told
    assert not any(str(item.prompt)[:40] in told for item in take(work, 10))


def test_without_a_tokenizer_prompts_are_text(fields: dict[str, Any]) -> None:
    work = workload(**fields, text=True)
    assert not work.exact
    assert all(isinstance(i.prompt, str) and i.input_tokens is None for i in take(work, 5))
