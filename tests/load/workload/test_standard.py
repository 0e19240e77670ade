"""The standard suite: twenty prompts of many kinds, none of them answered from a cache."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from importlib import resources
from itertools import pairwise

import pytest

from sweeper.config.schema import WorkloadConfig
from sweeper.load.workload.lengths import longest
from sweeper.load.workload.standard import suite
from tests.load.workload.common import take, workload


def test_the_suite_has_twenty_prompts_of_every_kind() -> None:
    prompts = suite().prompts
    assert len(prompts) == 20 == len({one.id for one in prompts})
    tags = Counter(tag for one in prompts for tag in one.tags)
    for tag, least in {"short": 4, "long": 4, "code": 4, "chinese": 4, "english": 8}.items():
        assert tags[tag] >= least, tag
    assert tags["structured"] >= 4 and {"json", "table", "yaml"} <= set(tags)


def test_tags_say_what_is_so() -> None:
    for one in suite().prompts:
        chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in one.prompt)
        size = len(one.prompt.split()) + chinese
        assert ("long" in one.tags) == (size >= 350), one.id
        assert "short" not in one.tags or size < 180, one.id
        if "chinese" in one.tags and "translation" not in one.tags:
            assert chinese > 100, one.id
        elif "translation" not in one.tags and "english" not in one.tags:
            assert chinese == 0, one.id


def test_short_and_long_take_turns() -> None:
    long_ones = ["long" in one.tags for one in suite().prompts]
    assert not any(a and b for a, b in pairwise(long_ones))
    assert any(long_ones[:4])  # even a small level has one


def test_a_change_of_the_file_is_seen_in_its_hash_and_needs_a_new_version() -> None:
    data = resources.files("sweeper.load").joinpath("data", "standard_suite.jsonl").read_bytes()
    head = json.loads(data.decode().splitlines()[0])
    conditions = workload("standard").conditions
    assert conditions["suite_sha256"] == sha256(data).hexdigest()
    assert conditions["suite_version"] == head["version"] == 1
    assert conditions["suite_sha256"] == SHA256_OF_VERSION[1], "raise the version of the suite"


SHA256_OF_VERSION = {
    1: "dfd8c18f6cf3f6c5c2a6d81dd5d7375966a154dbd1a5743ec9ea5914cbfa75aa",
}


def test_each_request_is_a_prompt_of_the_suite_behind_a_line_of_its_own() -> None:
    work = workload("standard")
    assert not work.exact and not work.shares_prefix
    items = [i for stream in ("a", "a/warm-up", "b") for i in take(work, 60, stream)]
    lines, prompts = zip(*(str(item.prompt).split("\n", 1) for item in items), strict=True)
    assert len(set(lines)) == len(items)
    assert list(prompts) == [one.prompt for one in suite().prompts] * 9


@pytest.mark.parametrize("output_tokens", [256, 512, 1024])
def test_output_lengths_are_selectable(output_tokens: int) -> None:
    work = workload("standard", output_tokens=output_tokens)
    assert {item.output_tokens for item in take(work, 20)} == {output_tokens}
    assert work.conditions["output_tokens"] == output_tokens
    cfg = WorkloadConfig(kind="standard", output_tokens=output_tokens)
    longest_input, longest_output = longest(cfg)
    assert longest_output == output_tokens and longest_input > 500
