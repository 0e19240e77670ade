"""A load level against a server with dialled faults."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from sweeper.load import server_metrics
from sweeper.load.decoding import Decoding
from sweeper.load.drive import Listeners
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord
from tests.load.stub import Dials, running
from tests.load.work import closed, drive


def outcomes(run: LevelRun) -> set[RequestOutcome]:
    return {record.outcome for record in run.records}


def test_a_good_level() -> None:
    seen: list[RequestRecord] = []
    with running(Dials(first_token_s=0.02, token_s=0.005)) as stub:
        run = drive(stub, warmup_requests_per_stream=1, listeners=Listeners(seen.append))
    assert stub.max_in_flight == 4
    assert outcomes(run) == {RequestOutcome.OK}
    assert [record.index for record in run.records] == list(range(12))
    assert {(record.prompt_tokens, record.output_tokens) for record in run.records} == {(16, 5)}
    for record in run.records:
        assert record.first_token_s is not None
        assert record.first_token_s - record.sent_s >= 0.02
        # A busy reader takes in the first token late, and never the whole stream early.
        assert record.finished_s - record.sent_s >= 0.02 + 4 * 0.005
    assert sorted(seen, key=lambda record: record.index) == list(run.records)
    assert {(r.input_tokens_asked, r.output_tokens_asked) for r in run.records} == {(16, 5)}
    assert run.ended_early is None and run.requests_asked == 12 and run.exact_input
    assert run.client_cpu_s > 0


def test_the_window_is_where_all_streams_are_busy() -> None:
    with running(Dials(first_token_s=0.03)) as stub:
        run = drive(stub, closed(3, 9))
    start, end = run.window_s
    starts = sorted(record.sent_s for record in run.records)
    ends = sorted(record.finished_s for record in run.records)
    assert starts[2] - 0.005 <= start <= ends[0]
    assert ends[6] <= end <= run.duration_s


def test_warm_up_is_excluded_with_prompts_of_its_own_and_counters_begin_after_it() -> None:
    with running() as stub:
        run = drive(stub, warmup_requests_per_stream=2)
    prompts = [tuple(body["prompt"]) for body in stub.bodies]
    assert len(prompts) == 20 and len(set(prompts)) == 20
    assert len(run.records) == 12
    key = server_metrics.GENERATION_TOKENS
    assert run.server_after[key] - run.server_before[key] == 12 * 5


def test_lengths_are_asked_for_so_that_they_can_be_checked() -> None:
    with running() as stub:
        drive(stub, closed(1, 1))
        free = Decoding(ignore_eos=False, seed=3, temperature=0.7)
        drive(stub, closed(1, 1), decoding=free)
    fixed, other = stub.bodies
    assert (fixed["min_tokens"], fixed["max_tokens"], fixed["ignore_eos"]) == (5, 5, True)
    assert fixed["stream_options"] == {"include_usage": True}
    assert "min_tokens" not in other and (other["seed"], other["temperature"]) == (3, 0.7)


def test_a_server_without_metrics_is_measured_without_counters() -> None:
    with running(Dials(metrics=False)) as stub:
        run = drive(stub)
    assert run.server_before == {} and run.server_after == {}
    assert outcomes(run) == {RequestOutcome.OK}


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("http_500", RequestOutcome.ERROR),
        ("reset", RequestOutcome.ERROR),
        ("error_event", RequestOutcome.ERROR),
        ("old_error_event", RequestOutcome.ERROR),
        ("not_json", RequestOutcome.ERROR),
        ("no_usage", RequestOutcome.INCOMPLETE),
        ("no_content", RequestOutcome.INCOMPLETE),
        ("no_finish", RequestOutcome.INCOMPLETE),
    ],
)
def test_every_failure_is_a_record_with_one_line(fault: str, outcome: RequestOutcome) -> None:
    with running(Dials(fault=lambda number: fault if number % 3 == 0 else None)) as stub:
        run = drive(stub)
    failed = [record for record in run.records if record.outcome is not RequestOutcome.OK]
    assert len(run.records) == 12 and len(failed) == 4
    for record in failed:
        assert record.outcome is outcome
        assert record.error and "\n" not in record.error


@pytest.mark.parametrize("fault", ["empty_first", "reasoning", "tool_call", "late_reset"])
def test_odd_but_good_streams_are_ok(fault: str) -> None:
    with running(Dials(fault=lambda _: fault, first_token_s=0.03)) as stub:
        run = drive(stub)
    assert outcomes(run) == {RequestOutcome.OK}
    for record in run.records:
        assert record.first_token_s is not None
        assert record.first_token_s - record.sent_s >= 0.03


def test_several_tokens_a_chunk_are_counted_by_usage() -> None:
    with running(Dials(tokens_per_chunk=5)) as stub:
        run = drive(stub)
    assert {(record.chunks, record.output_tokens) for record in run.records} == {(1, 5)}


def test_51_percent_failures_are_all_told() -> None:
    with running(Dials(fault=lambda number: "http_500" if number % 100 < 51 else None)) as stub:
        run = drive(stub, closed(60, 100))
    failed = [record for record in run.records if record.outcome is RequestOutcome.ERROR]
    assert len(run.records) == 100 and len(failed) == 51


def test_a_level_of_failures_only_ends_after_one_round() -> None:
    with running(Dials(fault=lambda _: "http_500")) as stub:
        run = drive(stub, closed(4, 1000))
    assert len(run.records) < 20
    assert run.ended_early is not None and "engine is dead" in run.ended_early


def test_a_stalled_stream_times_out_and_does_not_take_the_level_with_it() -> None:
    with running(Dials(fault=lambda number: "stall" if number == 2 else None)) as stub:
        run = drive(stub, request_timeout_s=0.3)
    assert [record.outcome for record in run.records].count(RequestOutcome.TIMEOUT) == 1
    assert len(run.records) == 12 and run.ended_early is None


def test_a_server_that_hangs_costs_one_round_of_timeouts() -> None:
    started = time.monotonic()
    with running(Dials(fault=lambda _: "stall")) as stub:
        run = drive(stub, closed(4, 100), request_timeout_s=0.4)
    assert time.monotonic() - started < 3
    assert outcomes(run) == {RequestOutcome.TIMEOUT} and run.ended_early is not None


def test_a_failing_warm_up_ends_the_level_without_records() -> None:
    with running(Dials(fault=lambda _: "http_500")) as stub:
        run = drive(stub, warmup_requests_per_stream=1)
    assert run.records == ()
    assert run.ended_early is not None and run.ended_early.startswith("warm-up")


def test_a_dead_server_ends_the_level_at_once() -> None:
    started = time.monotonic()
    with running(Dials(fault=lambda _: "stall")) as stub:
        alive = Listeners(is_alive=lambda: time.monotonic() < started + 0.4)
        run = drive(stub, request_timeout_s=60.0, listeners=alive)
    assert time.monotonic() - started < 3
    assert run.ended_early == "the server died"
    assert len(run.records) == 4 and outcomes(run) == {RequestOutcome.ERROR}


def test_a_refused_connection_ends_the_level_at_once() -> None:
    with running() as stub:
        pass
    started = time.monotonic()
    run = drive(stub, closed(4, 10_000))
    assert time.monotonic() - started < 3
    assert run.ended_early is not None and outcomes(run) == {RequestOutcome.ERROR}


def test_the_level_has_a_deadline() -> None:
    started = time.monotonic()
    with running(Dials(first_token_s=0.05)) as stub:
        run = drive(stub, closed(4, 10_000), level_timeout_s=0.5)
    assert time.monotonic() - started < 3
    assert run.ended_early is not None and "0.5 s" in run.ended_early
    assert RequestOutcome.OK in outcomes(run)


def test_an_interrupt_comes_out_promptly() -> None:
    with running(Dials(fault=lambda _: "stall")) as stub:

        def interrupt() -> None:
            # Not before the level runs: what is raised while an object is finalised is lost.
            while not stub.max_in_flight:
                time.sleep(0.01)
            time.sleep(0.3)
            started.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        started: list[float] = []
        # Whoever starts the tests in the background may have had it ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            threading.Thread(target=interrupt, daemon=True).start()
            with pytest.raises(KeyboardInterrupt):
                drive(stub, request_timeout_s=60.0)
        finally:
            signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started[0] < 10


def test_a_broken_liveness_probe_is_a_bug_and_not_a_hang() -> None:
    def probe() -> bool:
        raise RuntimeError("probe is broken")

    with running(Dials(fault=lambda _: "stall")) as stub, pytest.raises(RuntimeError):
        drive(stub, listeners=Listeners(is_alive=probe))


def test_the_client_can_keep_many_streams_in_flight() -> None:
    with running(Dials(first_token_s=0.3)) as stub:
        run = drive(stub, closed(150, 150))
    assert stub.max_in_flight == 150
    assert outcomes(run) == {RequestOutcome.OK}


def test_warm_up_goes_on_until_two_rounds_take_the_same_time() -> None:
    slow_first = Dials(first_token_s=0.03, slow_requests=4, slow_s=0.3)
    with running(slow_first) as stub:
        run = drive(
            stub,
            closed(4, 4),
            warmup_requests_per_stream=1,
            warmup_max_rounds=9,
            warmup_tolerance_share=0.3,
        )
    assert run.warm_up.stable is True
    assert run.warm_up.rounds == 3 and run.warm_up.requests == 12
    prompts = [tuple(body["prompt"]) for body in stub.bodies]
    assert len(set(prompts)) == len(prompts), "warm-up rounds must not share prompts"


def test_a_warm_up_that_never_settles_ends_and_says_so() -> None:
    with running(Dials(slow_every=5, slow_s=0.2)) as stub:
        run = drive(
            stub,
            closed(1, 2),
            warmup_requests_per_stream=1,
            warmup_max_rounds=3,
            warmup_tolerance_share=1e-9,
        )
    assert run.warm_up.stable is False and run.warm_up.rounds == 3


def test_gauges_are_sampled_while_requests_run() -> None:
    with running(Dials(first_token_s=0.1)) as stub:
        run = drive(stub, gauges_every_s=0.05)
    assert len(run.gauges) >= 3
    assert max(g.values[server_metrics.RUNNING] for g in run.gauges) == 4
    times = [gauge.at_s for gauge in run.gauges]
    assert times == sorted(times) and times[-1] <= run.duration_s


def test_a_server_without_gauges_is_asked_once_only() -> None:
    with running(Dials(first_token_s=0.1, metrics=False)) as stub:
        run = drive(stub, gauges_every_s=0.02)
    assert run.gauges == ()
    assert stub.paths.count("/metrics") <= 3


def test_a_client_that_is_kept_from_working_knows_it() -> None:
    def hold_the_loop(_: RequestRecord) -> None:
        time.sleep(0.05)

    with running(Dials(first_token_s=0.02)) as stub:
        held = drive(stub, closed(4, 48), listeners=Listeners(hold_the_loop))
        free = drive(stub, closed(1, 100))
    assert held.loop_lag_p95_s is not None and held.loop_lag_p95_s > 0.03
    assert free.loop_lag_p95_s is not None and free.loop_lag_p95_s < held.loop_lag_p95_s


def test_a_short_level_says_nothing_of_the_clients_lateness() -> None:
    with running() as stub:
        assert drive(stub).loop_lag_p95_s is None


def test_a_level_costs_little_beside_its_requests() -> None:
    with running(Dials(first_token_s=0.02)) as stub:
        overheads = [drive(stub, warmup_requests_per_stream=1).overhead_s for _ in range(3)]
    assert min(overheads) < 0.2


def test_beam_search_is_asked_for_in_the_engines_words_and_not_streamed() -> None:
    with running() as stub:
        run = drive(stub, closed(1, 1), decoding=Decoding(beam_width=4))
    (body,) = stub.bodies
    assert (body["use_beam_search"], body["n"], body["stream"]) == (True, 4, False)
    assert "min_tokens" not in body and "stream_options" not in body
    (record,) = run.records
    assert (record.outcome, record.prompt_tokens, record.output_tokens) == ("ok", 16, 5)
    assert record.first_token_s == record.finished_s and run.beam_width == 4


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [("http_500", RequestOutcome.ERROR), ("stall", RequestOutcome.TIMEOUT)],
)
def test_an_answer_in_one_piece_fails_like_a_stream(fault: str, outcome: RequestOutcome) -> None:
    with running(Dials(fault=lambda number: fault if number == 1 else None)) as stub:
        run = drive(stub, closed(1, 4), decoding=Decoding(beam_width=2), request_timeout_s=0.5)
    assert [record.outcome for record in run.records].count(outcome) == 1
    assert [record.outcome for record in run.records].count(RequestOutcome.OK) == 3


def test_text_is_handed_out_only_to_those_who_ask() -> None:
    texts: list[str] = []
    with running() as stub:
        drive(stub, closed(1, 2), listeners=Listeners(on_text=lambda *told: texts.append(told[2])))
        run = drive(stub, closed(1, 2))
    assert len(texts) == 2 and all(" word" in text for text in texts)
    assert not any(hasattr(record, "text") for record in run.records)
