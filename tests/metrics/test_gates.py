"""Every gate fails for what it is there for, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.load import server_metrics as names
from sweeper.load.records import LevelRun, RequestOutcome
from sweeper.metrics.summary import summarise
from tests.metrics.synthetic import batch, by_the_clock, failed, level, record, with_records


def reasons(*runs: LevelRun) -> list[str]:
    summary = summarise(runs, device_count=1)
    assert summary.valid == (not summary.reasons)
    return summary.reasons


def counted(run: LevelRun, **grown: float) -> LevelRun:
    return replace(
        run,
        server_before=dict.fromkeys(grown, 100.0),
        server_after={name: 100.0 + value for name, value in grown.items()},
    )


def every(run: LevelRun, **changes: Any) -> LevelRun:
    return replace(run, records=tuple(replace(r, **changes) for r in run.records))


def some_failing(failures: int, requests: int = 200, **how: Any) -> LevelRun:
    run = level(concurrency=4, rounds=requests // 4)
    middle = requests // 4
    broken = [failed(r.index, r.sent_s, **how) for r in run.records[middle : middle + failures]]
    return replace(run, records=(*run.records[:middle], *broken, *run.records[middle + failures :]))


@pytest.mark.parametrize("run", [level(), level(concurrency=1), by_the_clock(), batch()])
def test_a_sound_level_passes_every_gate(run: LevelRun) -> None:
    tokens = 11.0 * len(run.records)
    grown = {
        names.GENERATION_TOKENS: tokens,
        names.PREFIX_HITS: 10.0,
        names.PREFIX_QUERIES: 1280.0,
    }
    assert reasons(replace(counted(run, **grown), loop_lag_p95_s=0.002)) == []


def test_survivors_of_a_broken_run_do_not_win() -> None:
    ok = level(concurrency=4, rounds=250).records[:514]
    run = with_records(level(rounds=250), (*ok, *(failed(514 + i) for i in range(486))))
    assert any("514 of 1000" in reason and "HTTP 500" in reason for reason in reasons(run))


@pytest.mark.parametrize(
    ("failures", "valid"), [(0, True), (2, True), (3, False), (102, False), (150, False)]
)
def test_one_percent_may_fail_and_no_more(failures: int, valid: bool) -> None:
    assert (reasons(some_failing(failures)) == []) == valid


def test_failures_of_all_repeats_count_together() -> None:
    assert reasons(some_failing(3), level(rounds=50), level(rounds=50)) == []
    assert any("of 400" in r for r in reasons(some_failing(3), some_failing(3)))


def test_all_requests_failing_is_no_measurement_and_never_zero() -> None:
    run = with_records(level(), [failed(i) for i in range(20)])
    summary = summarise([run], device_count=1)
    assert not summary.valid
    assert (summary.metrics, summary.intervals, summary.n) == ({}, {}, 0)
    assert summary.reasons == [
        "only 0 of 20 requests succeeded, 99% needed; most often: HTTP 500: gone"
    ]


def test_a_server_that_stalls_for_good_has_no_good_number() -> None:
    run = some_failing(100, error="no answer in 300 s", outcome=RequestOutcome.TIMEOUT)
    run = replace(run, ended_early="8 requests in a row timed out")
    told = reasons(run)
    assert any("ended after 200 of 200" in reason for reason in told)
    assert any("most often: no answer in 300 s" in reason for reason in told)


def test_streams_that_end_without_usage_do_not_count_as_served() -> None:
    how = {"error": "the stream had no usage", "outcome": RequestOutcome.INCOMPLETE}
    summary = summarise([some_failing(60, **how)], device_count=1)
    assert summary.n == 140 and not summary.valid
    assert "no usage" in summary.reasons[0]


def test_an_early_end_is_a_reason() -> None:
    run = level()
    asked = replace(run.level, requests=100)
    run = replace(run, level=asked, ended_early="the server died")
    assert reasons(run) == ["ended after 20 of 100 requests: the server died"]
    assert reasons(level(), run) == ["repeat 2: ended after 20 of 100 requests: the server died"]


def test_an_empty_level_is_a_reason() -> None:
    assert reasons(level(records=())) == ["no request was sent"]


def test_a_short_output_is_a_reason() -> None:
    (reason,) = reasons(every(level(), output_tokens=7))
    assert "output length kept by only 0 of 20" in reason
    assert "11 tokens were asked and 7 counted" in reason
    assert reasons(every(level(fixed_output=False), output_tokens=7)) == []


@pytest.mark.parametrize(("told", "how"), [(60, "cut off"), (65, "more than was sent")])
def test_prompts_that_do_not_have_the_length_asked_for_are_a_reason(told: int, how: str) -> None:
    (reason,) = reasons(every(level(), prompt_tokens=told))
    assert "input length kept by only 0 of 20" in reason and how in reason
    assert reasons(every(level(exact_input=False), prompt_tokens=told)) == []


def test_each_request_has_a_length_of_its_own() -> None:
    run = level()
    various = [
        replace(r, prompt_tokens=50 + r.index, input_tokens_asked=50 + r.index) for r in run.records
    ]
    assert reasons(replace(run, records=tuple(various))) == []
    off_by_one = replace(various[0], prompt_tokens=51)
    assert reasons(replace(run, records=(off_by_one, *various[1:]))) != []


def test_lengths_that_nobody_knows_are_not_checked() -> None:
    unknown = {"input_tokens_asked": None, "output_tokens_asked": None}
    assert reasons(every(level(), prompt_tokens=7, output_tokens=9, **unknown)) == []


def test_beams_may_be_counted_together() -> None:
    run = every(level(beam_width=4), output_tokens=44, chunks=1)
    assert reasons(counted(run, **{names.GENERATION_TOKENS: 5000.0})) == []


def test_a_server_that_counts_otherwise_is_a_reason() -> None:
    assert any("240" in r for r in reasons(counted(level(), **{names.GENERATION_TOKENS: 240.0})))
    assert reasons(counted(level(), **{names.GENERATION_TOKENS: 222.0})) == []


def test_a_client_busy_with_itself_is_a_reason() -> None:
    assert any("bottleneck" in reason for reason in reasons(level(client_cpu_s=1.4)))


@pytest.mark.parametrize(
    ("ttft_s", "lag_s", "valid"),
    [(0.02, 0.019, True), (0.02, 0.021, False), (1.0, 0.09, True), (1.0, 0.11, False)],
)
def test_a_client_whose_event_loop_is_late_is_a_reason(
    ttft_s: float, lag_s: float, valid: bool
) -> None:
    told = reasons(level(ttft_s=ttft_s, loop_lag_p95_s=lag_s))
    assert (told == []) == valid
    assert all("the client was the bottleneck" in reason for reason in told)


@pytest.mark.parametrize(("late_s", "valid"), [(0.019, True), (0.03, False)])
def test_a_client_that_sends_late_is_a_reason(late_s: float, valid: bool) -> None:
    run = by_the_clock()  # E2E is 300 ms, of which 5 % is 15 ms
    late = tuple(replace(r, sent_s=r.scheduled_s + late_s) for r in run.records)
    told = reasons(replace(run, records=late))
    assert (told == []) == valid
    assert all("requests went out 30 ms late" in reason for reason in told)


def test_later_turns_wait_for_their_user_and_not_for_the_client() -> None:
    run = by_the_clock()
    late = tuple(replace(r, sent_s=r.scheduled_s + 0.05, turn=1) for r in run.records)
    assert reasons(replace(run, records=late)) == []


def test_prompts_used_again_are_a_reason_unless_the_workload_means_it() -> None:
    run = counted(level(), **{names.PREFIX_HITS: 900.0, names.PREFIX_QUERIES: 1280.0})
    assert any("prefix cache" in reason for reason in reasons(run))
    summary = summarise([replace(run, shares_prefix=True)], device_count=1)
    assert summary.valid
    assert summary.metrics["prefix_cache_hit_share"] == pytest.approx(900 / 1280)


def test_a_client_that_under_drives_is_a_reason() -> None:
    run = level(concurrency=4, rounds=6)
    half = tuple(r for r in run.records if r.index % 4 < 2)
    assert any("streams were busy" in r for r in reasons(replace(run, records=half)))


def test_users_who_think_between_turns_do_not_under_drive() -> None:
    run = level(concurrency=4, rounds=6)
    half = tuple(replace(r, turn=r.index // 4) for r in run.records if r.index % 4 < 2)
    assert reasons(replace(run, records=half)) == []


def test_the_repeat_that_failed_is_named() -> None:
    told = reasons(level(), level(client_cpu_s=1.4), level(records=()))
    assert told == ["repeat 2: the client was the bottleneck: 93% of a processor core"]


def test_one_impossible_request_is_a_reason() -> None:
    strange = record(0, 0.0, 0.1, 0.02, first_token_s=-1.0)
    run = level()
    (told,) = reasons(replace(run, records=(strange, *run.records[1:])))
    assert told.startswith("1 of 20 requests have impossible times or counts: 1 with")
