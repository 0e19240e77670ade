"""Traces: arrivals and lengths as recorded, prompts made to measure, hashes honoured."""

from __future__ import annotations

import itertools
import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweeper.config.schema import WorkloadConfig
from sweeper.errors import ConfigError
from sweeper.load.workload.item import Workload
from sweeper.load.workload.lengths import longest
from sweeper.load.workload.trace import count_requests
from sweeper.load.workload.trace_files import HASH_BLOCK_TOKENS, read_trace
from tests.load.workload.common import take, workload

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"


def azure(path: Path, *rows: str, header: str = HEADER) -> str:
    path.write_text("\r\n".join([header, *rows]), encoding="utf-8")
    return str(path)


def mooncake(path: Path, *lines: Any) -> str:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def line(at_ms: float, tokens: int, output: int, *hash_ids: int) -> dict[str, Any]:
    return {
        "timestamp": at_ms,
        "input_length": tokens,
        "output_length": output,
        "hash_ids": list(hash_ids),
    }


def blocks_of(prompt: Any) -> list[tuple[int, ...]]:
    starts = range(0, len(prompt), HASH_BLOCK_TOKENS)
    return [tuple(prompt[start : start + HASH_BLOCK_TOKENS]) for start in starts]


def test_an_azure_trace_is_replayed_as_recorded(tmp_path: Path) -> None:
    path = azure(
        tmp_path / "code.csv",
        "2023-11-16 18:17:03.9799600,480,10",
        "2023-11-16 18:17:04.0319600,318,8",
        "2023-11-16 18:18:04.0000000,11,1",
    )
    work = workload("trace", path=path)
    items = list(work.items("a"))
    assert [item.at_s for item in items] == pytest.approx([0, 0.052, 60.02004])
    assert [len(item.prompt) for item in items] == [480, 318, 11]
    assert [item.input_tokens for item in items] == [480, 318, 11]
    assert [item.output_tokens for item in items] == [10, 8, 1]
    assert work.exact and not work.shares_prefix
    assert work.conditions["format"] == "azure_csv" and work.conditions["requests"] == 3
    assert work.conditions["file_sha256"] == sha256(Path(path).read_bytes()).hexdigest()


def test_columns_are_found_by_name_and_times_may_have_a_zone(tmp_path: Path) -> None:
    path = azure(
        tmp_path / "code.csv",
        "7,2024-05-10 00:00:00.009930+00:00,x,12",
        "8,2024-05-10 00:00:01.009930+00:00,y,13",
        header="GeneratedTokens,TIMESTAMP,user,ContextTokens",
    )
    items = list(workload("trace", path=path).items("a"))
    assert [(i.at_s, i.input_tokens, i.output_tokens) for i in items] == [(0, 12, 7), (1, 13, 8)]


@st.composite
def hashed_traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Requests over few hash ids, each prompt of a length that fits its ids."""
    lines = []
    for number in range(draw(st.integers(1, 6))):
        ids = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
        rest = draw(st.integers(1, HASH_BLOCK_TOKENS))
        tokens = (len(ids) - 1) * HASH_BLOCK_TOKENS + rest
        lines.append(line(number * 100, tokens, draw(st.integers(1, 50)), *ids))
    return lines


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=hashed_traces(), seed=st.integers(0, 5))
def test_the_same_hash_is_the_same_block_and_another_is_another(
    tmp_path: Path, lines: list[dict[str, Any]], seed: int
) -> None:
    work = workload("trace", seed=seed, path=mooncake(tmp_path / "t.jsonl", *lines))
    items = list(work.items("a"))
    assert [len(item.prompt) for item in items] == [one["input_length"] for one in lines]
    whole: dict[int, tuple[int, ...]] = {}
    for one, item in zip(lines, items, strict=True):
        for hash_id, block in zip(one["hash_ids"], blocks_of(item.prompt), strict=True):
            known = whole.setdefault(hash_id, block)
            shorter = min(len(known), len(block))
            assert known[:shorter] == block[:shorter]
            whole[hash_id] = max(known, block, key=len)
    beginnings = {block[:16] for block in whole.values() if len(block) >= 16}
    assert len(beginnings) == sum(len(block) >= 16 for block in whole.values())


def test_another_stream_has_other_blocks(tmp_path: Path) -> None:
    path = mooncake(tmp_path / "t.jsonl", line(0, 1000, 5, 1, 2), line(5, 1000, 5, 1, 3))
    work = workload("trace", path=path)
    assert work.shares_prefix
    one, other = ([blocks_of(i.prompt) for i in work.items(name)] for name in ("a", "b"))
    assert one[0][0] == one[1][0] and one[0][1] != one[1][1]
    assert not set(itertools.chain(*one)) & set(itertools.chain(*other))


def test_a_trace_without_hashes_shares_nothing(tmp_path: Path) -> None:
    path = mooncake(
        tmp_path / "t.jsonl",
        {"timestamp": 0, "input_length": 600, "output_length": 5},
        {"timestamp": 3, "input_length": 600, "output_length": 5, "hash_ids": None},
    )
    work = workload("trace", path=path)
    one, other = work.items("a")
    assert not work.shares_prefix and one.prompt != other.prompt
    assert one.input_tokens == len(one.prompt) == 600


def test_a_trace_that_is_not_in_order_is_sorted_and_begins_at_zero(tmp_path: Path) -> None:
    path = mooncake(
        tmp_path / "t.jsonl", line(9000, 9, 9, 9), line(4000, 4, 4, 4), line(5000, 5, 5, 5)
    )
    work = workload("trace", path=path)
    assert [(i.at_s, i.input_tokens) for i in work.items("a")] == [(0, 4), (1, 5), (5, 9)]
    assert work.conditions["sorted_here"] is True


def test_requests_that_are_too_long_are_left_out_and_counted(tmp_path: Path) -> None:
    path = mooncake(
        tmp_path / "t.jsonl",
        line(0, 500, 5, 1),
        line(1000, 20, 5, 2),
        line(2000, 20, 900, 3),
        line(3000, 0, 5),
        line(4000, 30, 0, 4),
        line(6000, 30, 6, 4),
    )
    work = workload("trace", path=path, input_tokens_max=100, output_tokens_max=100)
    assert work.conditions["left_out"] == {
        "input too long": 1,
        "output too long": 1,
        "no tokens": 2,
    }
    assert [(i.at_s, i.input_tokens) for i in work.items("a")] == [(0, 20), (5, 30)]
    assert work.conditions["requests_in_file"] == 6 and work.conditions["requests"] == 2


def test_only_the_first_requests_are_taken(tmp_path: Path) -> None:
    path = mooncake(tmp_path / "t.jsonl", *[line(n, 5, 5, n) for n in range(9)])
    work = workload("trace", path=path, max_requests=4)
    assert [i.at_s for i in work.items("a")] == pytest.approx([0, 0.001, 0.002, 0.003])
    cfg = WorkloadConfig(kind="trace", path=path, max_requests=4)
    assert count_requests(cfg) == 4 and longest(cfg) == (5, 5)


BROKEN = [
    (["time,in,out", "1,2,3"], "line 1 begins like no trace"),
    ([HEADER, "yesterday,5,5"], "line 2 is not a request of an Azure trace"),
    ([HEADER, "2023-11-16 18:17:03,5,5", "2023-11-16 18:17:04,5"], "line 3 .*column is missing"),
    ([HEADER, "2023-11-16 18:17:03,five,5"], "line 2 .*five"),
    ([HEADER, "2023-11-16 18:17:03,-5,5"], "line 2 .*-5"),
    ([HEADER, "2023-11-16 18:17:03,5,5", "2023-11-16 18:17:03+00:00,5,5"], "line 3"),
    ([HEADER], "no request that can be sent"),
    (['{"timestamp": 1'], "line 1 is not a request of a Mooncake trace"),
    (['{"timestamp": 1, "input_length": 5}'], "line 1 .*no 'output_length'"),
    (['{"timestamp": "1", "input_length": 5, "output_length": 5}'], "line 1 .*timestamp"),
    (['{"timestamp": NaN, "input_length": 5, "output_length": 5}'], "line 1 .*timestamp"),
    (['{"timestamp": 1, "input_length": 5.5, "output_length": 5}'], "line 1 .*5.5"),
    ([json.dumps(line(0, 5, 5, 1)), json.dumps(line(0, 513, 5, 1))], "line 2 .*1 hash ids for 2"),
    ([json.dumps(line(0, 5, 5, 1)), "[1]"], "line 2 .*not an object"),
    (['{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": 7}'], "line 1"),
    ([" "], "is empty"),
]


@pytest.mark.parametrize(("lines", "reason"), BROKEN)
def test_what_is_no_trace_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], reason: str
) -> None:
    path = mooncake(tmp_path / "t", *lines)
    with pytest.raises(ConfigError, match=reason) as caught:
        workload("trace", path=path)
    assert path in caught.value.message and caught.value.remedy


def test_a_format_that_was_named_is_not_guessed(tmp_path: Path) -> None:
    path = mooncake(tmp_path / "t", line(0, 5, 5, 1))
    with pytest.raises(ConfigError, match="header of an Azure trace"):
        workload("trace", path=path, format="azure_csv")


def recorded(name: str, **fields: Any) -> Workload:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{name} is not at hand: real traces are not part of the repository")
    return workload("trace", path=str(path), **fields)


def test_the_azure_code_trace() -> None:
    work = recorded("azure_llm_trace_code.csv")
    assert work.conditions["requests"] == 8819
    assert work.conditions["duration_s"] == pytest.approx(3435.948, abs=0.001)
    items = take(work, 300)
    assert (items[0].input_tokens, items[0].output_tokens) == (4808, 10)
    assert all(len(item.prompt) == item.input_tokens for item in items)


def test_the_mooncake_trace_shares_as_much_as_its_hashes_say() -> None:
    work = recorded("mooncake_conversation_1500.jsonl", input_tokens_max=6000)
    arrivals = read_trace(
        WorkloadConfig(
            kind="trace",
            path=str(DATA / "mooncake_conversation_1500.jsonl"),
            input_tokens_max=6000,
        )
    ).arrivals[:150]
    seen: set[tuple[int, ...]] = set()
    hits = total = 0
    for item in take(work, 150):
        for block in blocks_of(item.prompt):
            hits, total = hits + (block in seen), total + 1
            seen.add(block)
    ids = [hash_id for one in arrivals for hash_id in one.hash_ids]
    assert total == len(ids) == sum(math.ceil(one.input_tokens / 512) for one in arrivals)
    assert hits == len(ids) - len(set(ids)) > 0
