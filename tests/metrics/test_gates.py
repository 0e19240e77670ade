"""Every gate fails for what it is there for, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.load import server_metrics as names
from sweeper.load.records import LevelRun
from sweeper.metrics.summary import summarise
from tests.metrics.synthetic import failed, level


def reasons(run: LevelRun) -> list[str]:
    summary = summarise(run, device_count=1)
    assert summary.valid == (not summary.reasons)
    return summary.reasons


def counted(run: LevelRun, **grown: float) -> LevelRun:
    return replace(
        run,
        server_before=dict.fromkeys(grown, 100.0),
        server_after={name: 100.0 + value for name, value in grown.items()},
    )


def with_first(run: LevelRun, **changes: Any) -> LevelRun:
    return replace(run, records=(replace(run.records[0], **changes), *run.records[1:]))


def test_a_sound_level_passes_every_gate() -> None:
    run = counted(
        level(),
        **{
            names.GENERATION_TOKENS: 220.0,
            names.PREFIX_HITS: 10.0,
            names.PREFIX_QUERIES: 1280.0,
        },
    )
    assert reasons(run) == []


def test_survivors_of_a_broken_run_do_not_win() -> None:
    ok = level(concurrency=4, rounds=250).records[:514]
    run = level(records=(*ok, *(failed(514 + i) for i in range(486))), requests_asked=1000)
    assert any("514 of 1000" in reason and "HTTP 500" in reason for reason in reasons(run))


@pytest.mark.parametrize(("failures", "valid"), [(1, True), (3, False)])
def test_one_percent_may_fail(failures: int, valid: bool) -> None:
    good = level(concurrency=4, rounds=50).records
    run = level(concurrency=4, rounds=50)
    broken = tuple(failed(r.index, r.sent_s) for r in good[100 : 100 + failures])
    run = replace(run, records=(*good[:100], *broken, *good[100 + failures :]))
    assert (reasons(run) == []) == valid


def test_an_early_end_is_a_reason() -> None:
    run = level(ended_early="the server died", requests_asked=100)
    assert reasons(run) == ["ended after 20 of 100 requests: the server died"]


@pytest.mark.parametrize("field", ["output_tokens", "prompt_tokens"])
def test_lengths_must_be_honoured(field: str) -> None:
    run = level()
    short = replace(run, records=tuple(replace(r, **{field: 7}) for r in run.records))
    assert any("length" in reason for reason in reasons(short))


def test_lengths_that_were_not_asked_for_are_not_checked() -> None:
    run = level(fixed_output=False, exact_input=False, output_tokens_asked=99)
    assert reasons(replace(run, input_tokens_asked=99)) == []


@pytest.mark.parametrize("first", [-1.0, 0.0, 5.0, float("nan"), float("inf")])
def test_impossible_times_are_found_and_kept_out(first: float) -> None:
    summary = summarise(with_first(level(), first_token_s=first), device_count=1)
    assert not summary.valid and summary.n == 19
    assert summary.metrics["ttft_p99_ms"] == pytest.approx(100.0)


def test_a_server_that_counts_otherwise_is_a_reason() -> None:
    assert any("240" in r for r in reasons(counted(level(), **{names.GENERATION_TOKENS: 240.0})))
    assert reasons(counted(level(), **{names.GENERATION_TOKENS: 222.0})) == []


def test_a_counter_that_was_reset_tells_nothing() -> None:
    run = level(
        server_before={names.GENERATION_TOKENS: 9.0, names.PREEMPTIONS: 5.0},
        server_after={names.GENERATION_TOKENS: 3.0, names.PREEMPTIONS: 1.0},
    )
    summary = summarise(run, device_count=1)
    assert summary.valid and "preemptions" not in summary.metrics


def test_a_busy_client_is_a_reason() -> None:
    assert any("bottleneck" in reason for reason in reasons(level(client_cpu_s=1.4)))


def test_unexpected_prefix_cache_hits_are_a_reason() -> None:
    run = counted(level(), **{names.PREFIX_HITS: 900.0, names.PREFIX_QUERIES: 1280.0})
    assert any("prefix cache" in reason for reason in reasons(run))


def test_a_load_that_was_not_kept_up_is_a_reason() -> None:
    run = level(concurrency=4, rounds=6)
    half = tuple(r for r in run.records if r.index % 4 < 2)
    assert any("streams were busy" in r for r in reasons(replace(run, records=half)))


def test_an_empty_level_is_a_reason() -> None:
    assert reasons(level(records=())) == ["no request was sent"]
