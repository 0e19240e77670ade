"""Files of requests: all of them sent, in an order of the stream's own; faults by their line."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import WorkloadConfig
from sweeper.errors import ConfigError
from sweeper.load.workload.lengths import longest
from tests.load.workload.common import take, workload


def written(path: Path, *lines: Any) -> str:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def numbered(n: int) -> list[dict[str, Any]]:
    return [{"prompt": f"Question {number}", "output_tokens": 10 + number} for number in range(n)]


def sharegpt(n: int) -> list[dict[str, Any]]:
    return [
        {"conversations": [{"from": "human", "value": f"Q{number}"}, {"from": "gpt", "value": "A"}]}
        for number in range(n)
    ]


def test_every_line_is_sent_once_before_one_is_sent_again(tmp_path: Path) -> None:
    work = workload("file", path=written(tmp_path / "a.jsonl", *numbered(30)))
    items = take(work, 75)
    everything = {f"Question {number}" for number in range(30)}
    assert {i.prompt for i in items[:30]} == {i.prompt for i in items[30:60]} == everything
    assert [i.prompt for i in items[:30]] != [i.prompt for i in items[30:60]]
    assert all(i.output_tokens == 10 + int(str(i.prompt).split()[1]) for i in items)
    assert work.shares_prefix and not work.exact


def test_streams_have_orders_of_their_own(tmp_path: Path) -> None:
    work = workload("file", path=written(tmp_path / "a.jsonl", *numbered(30)))
    assert [i.prompt for i in take(work, 30, "a")] != [i.prompt for i in take(work, 30, "b")]


def test_a_line_without_a_length_takes_the_workload_s(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"prompt": "Hi"}, {"prompt": "Hi", "max_tokens": 5})
    items = take(workload("file", path=path, output_tokens=77), 2)
    assert sorted(item.output_tokens for item in items) == [5, 77]


def test_token_ids_have_a_length_that_is_known(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"prompt": [5, 6, 7]}, {"prompt": [8]})
    work = workload("file", path=path)
    assert work.exact and sorted(i.input_tokens or 0 for i in take(work, 2)) == [1, 3]
    mixed = workload("file", path=written(tmp_path / "b.jsonl", {"prompt": [5]}, {"prompt": "Hi"}))
    assert not mixed.exact and mixed.conditions["prompts"] == "token ids and text"


@pytest.mark.parametrize("form", ["auto", "sharegpt"])
@pytest.mark.parametrize("as_array", [False, True])
def test_sharegpt_is_lines_or_one_array(tmp_path: Path, form: str, as_array: bool) -> None:
    lines = [json.dumps(sharegpt(12), indent=1)] if as_array else sharegpt(12)
    work = workload("file", path=written(tmp_path / "a.json", *lines), format=form)
    assert {item.prompt for item in take(work, 12)} == {f"Q{number}" for number in range(12)}


def test_conversations_without_a_human_are_left_out_and_counted(tmp_path: Path) -> None:
    machine = {"conversations": [{"from": "gpt", "value": "Only me."}]}
    path = written(tmp_path / "a.jsonl", machine, *sharegpt(3), machine)
    conditions = workload("file", path=path).conditions
    assert conditions["requests"] == 3
    assert conditions["left_out"] == {"no human turn": 2}


def test_requests_above_the_limits_are_left_out_and_counted(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.jsonl",
        {"prompt": [1] * 50, "output_tokens": 10},
        {"prompt": [1] * 10, "output_tokens": 90},
        {"prompt": [1] * 10, "output_tokens": 20},
        {"prompt": "word " * 60, "output_tokens": 20},
    )
    work = workload("file", path=path, input_tokens_max=40, output_tokens_max=50)
    assert work.conditions["left_out"] == {"input too long": 2, "output too long": 1}
    assert [len(item.prompt) for item in take(work, 2)] == [10, 10]


def test_only_the_first_requests_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *numbered(9), "broken, but behind the last one taken")
    work = workload("file", path=path, max_requests=9)
    assert work.conditions["requests"] == 9
    assert {i.prompt for i in take(work, 9)} == {f"Question {number}" for number in range(9)}


def test_conditions_name_and_hash_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *numbered(3))
    conditions = workload("file", path=path).conditions
    assert conditions["file"] == "a.jsonl"
    assert conditions["file_sha256"] == sha256(Path(path).read_bytes()).hexdigest()


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *numbered(3))
    before = workload("file", path=path).conditions
    written(tmp_path / "a.jsonl", *numbered(4))
    os.utime(path, (1, 1))
    after = workload("file", path=path).conditions
    assert before["file_sha256"] != after["file_sha256"] and after["requests"] == 4


def test_the_longest_is_that_of_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.jsonl",
        {"prompt": [1] * 70, "max_tokens": 5},
        {"prompt": "a b", "max_tokens": 9},
    )
    assert longest(WorkloadConfig(kind="file", path=path)) == (70, 9)


BROKEN = [
    (["{'prompt': 1}"], "line 1 is not JSON"),
    ([{"prompt": "a"}, "", '{"prompt": "b"'], "line 3 is not JSON"),
    ([{"prompt": "a"}, {"text": "b"}], "line 2 has none of"),
    ([{"prompt": "a"}, {"prompt": ["b"]}], "line 2 has a 'prompt'"),
    (["[", ' {"prompt": "a"},', ' {"prompt": 1}', "]"], "line 3 has a 'prompt'"),
    (["[", ' {"prompt": "a"},', ' {"prompt": }', "]"], "line 3 is not JSON"),
    (["[", ' {"prompt": "a"}', ' {"prompt": "b"}', "]"], "line 2 is not JSON: no comma"),
    (["[", ' {"prompt": "a"}'], "is not JSON: no comma|no end"),
    (["[]"], "no request"),
    ([{"conversations": []}], "no request that can be sent"),
    (["   "], "empty"),
]


@pytest.mark.parametrize(("lines", "reason"), BROKEN)
def test_broken_lines_are_named_and_never_passed_over(
    tmp_path: Path, lines: list[Any], reason: str
) -> None:
    path = written(tmp_path / "a.jsonl", *lines)
    with pytest.raises(ConfigError, match=reason) as caught:
        workload("file", path=path)
    assert path in caught.value.message and caught.value.remedy


def test_a_packed_file_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        workload("file", path=str(path))


def test_a_missing_file_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        workload("file", path=str(tmp_path / "none.jsonl"))
