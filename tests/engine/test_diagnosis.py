"""What the diagnoses of all engines share: the order of causes, signals, and any input at all."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.log_lines import MAX_CAUSE_CHARS, MAX_EVIDENCE_CHARS
from sweeper.engine.transformers.diagnosis import diagnose_transformers
from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.engine.vllm_offline.diagnosis import diagnose_offline
from sweeper.verdicts import Phase, Verdict
from tests.engine.vllm.error_texts import TEXTS

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
NCCL = "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
READY = "INFO:     Application startup complete."
INFO = "(EngineCore pid=7) INFO 10-25 13:08:01 [core.py:1] all is well"
DIED = (
    "(EngineCore pid=2) ERROR 10-25 13:08:43 [multiproc_executor.py:316] Worker proc VllmWorker-1 "
    "died unexpectedly (exit code: {code}), shutting down executor."
)


def test_an_unlisted_exception_goes_before_what_follows_from_it() -> None:
    found = diagnose_vllm(f"TypeError: a worker's own fault\n{NCCL}", Phase.START, 1)
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, "TypeError: a worker's own fault")
    assert diagnose_vllm(NCCL, Phase.START, 1).verdict is Verdict.INFRA


def test_a_known_cause_goes_before_what_follows_from_it_wherever_it_stands() -> None:
    found = diagnose_vllm(f"{NCCL}\n{OOM}", Phase.START, 1)
    assert (found.verdict, found.learnt["rule"]) == (Verdict.CAPACITY, "device_out_of_memory")


def test_what_was_said_before_readiness_did_not_kill_the_server() -> None:
    log = f"ImportError: an optional part is not there\n{READY}\n{OOM}"
    assert diagnose_vllm(log, Phase.LOAD, 1).learnt["rule"] == "device_out_of_memory"
    log = f"{OOM}\n{READY}\nKeyError: 'under load'"
    assert diagnose_vllm(log, Phase.LOAD, 1).cause == "KeyError: 'under load'"


def test_silence_after_readiness_leaves_what_stood_before_it() -> None:
    assert diagnose_vllm(f"KeyError: 'x'\n{READY}", Phase.LOAD, 1).cause == "KeyError: 'x'"


def test_source_quoted_by_one_worker_is_no_cause_while_another_writes_between() -> None:
    log = "\n".join(
        [
            '(Worker_TP0 pid=1) ERROR 10-25 13:08:43 [x.py:1]   File "a.py", line 5, in check',
            "(Worker_TP1 pid=2) INFO 10-25 13:08:43 [x.py:1] loading",
            '(Worker_TP1 pid=2) ERROR 10-25 13:08:43 [x.py:1]   File "b.py", line 5, in other',
            "(Worker_TP0 pid=1) ERROR 10-25 13:08:43 [x.py:1]     check(No available memory for "
            "the cache blocks)",
            "(Worker_TP0 pid=1) ERROR 10-25 13:08:43 [x.py:1] TypeError: no",
        ]
    )
    assert diagnose_vllm(log, Phase.START, 1).cause == "TypeError: no"


def test_two_processes_in_one_line_are_told_apart() -> None:
    log = f"Loading shards: 50%|#####     | 1/2 {INFO}\n{OOM}{INFO}"
    found = diagnose_vllm(log, Phase.START, 1)
    assert found.learnt["rule"] == "device_out_of_memory"
    assert found.cause == OOM


@pytest.mark.parametrize(
    ("exit_code", "verdict", "rule"),
    [
        (-7, Verdict.INFRA, "shared_memory"),
        (135, Verdict.INFRA, "shared_memory"),
        (-4, Verdict.INFRA, "illegal_instruction"),
        (-9, Verdict.UNKNOWN, None),
        (137, Verdict.UNKNOWN, None),
        (-11, Verdict.UNKNOWN, None),
        (1, Verdict.UNKNOWN, None),
    ],
)
def test_what_the_end_proves_where_the_log_is_silent(
    exit_code: int, verdict: Verdict, rule: str | None
) -> None:
    found = diagnose_vllm(INFO, Phase.START, exit_code)
    assert (found.verdict, found.learnt.get("rule")) == (verdict, rule)
    assert found.learnt.get("scope") == ("machine" if rule else None)


def test_the_signal_of_a_worker_counts_where_nothing_else_does() -> None:
    found = diagnose_vllm(DIED.format(code=-9), Phase.START, 1)
    assert found.verdict is Verdict.UNKNOWN
    assert found.cause == "killed by signal 9 (out of host memory?)"
    found = diagnose_vllm(DIED.format(code=-7), Phase.START, 1)
    assert (found.verdict, found.learnt["rule"]) == (Verdict.INFRA, "shared_memory")
    assert diagnose_vllm(f"{OOM}\n{DIED.format(code=-7)}", Phase.START, 1).verdict is (
        Verdict.CAPACITY
    )


def test_the_kernels_word_makes_a_kill_a_lack_of_memory() -> None:
    log = f"{DIED.format(code=-9)}\n[ 12.345678] Out of memory: Killed process 7 (VLLM::EngineCor)"
    found = diagnose_vllm(log, Phase.START, -9)
    assert (found.verdict, found.learnt["rule"]) == (Verdict.CAPACITY, "host_out_of_memory")


def test_a_fault_of_the_machine_is_marked_as_one() -> None:
    found = diagnose_vllm("OSError: [Errno 28] No space left on device", Phase.LOAD, 1)
    assert (found.verdict, found.learnt["scope"]) == (Verdict.INFRA, "machine")
    assert "scope" not in diagnose_vllm(NCCL, Phase.LOAD, 1).learnt


def test_field_that_pydantic_refuses_is_named() -> None:
    log = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ParallelConfig\n"
        "tensor_parallel_size\n"
        "  Input should be greater than or equal to 1 [type=greater_than_equal, input_value=0, "
        "input_type=int]\n"
    )
    found = diagnose_vllm(log, Phase.START, 1)
    assert found.cause == "tensor_parallel_size: Input should be greater than or equal to 1"
    assert found.learnt["fields"] == ["tensor_parallel_size"]


def test_all_fields_that_pydantic_refuses_are_named() -> None:
    further = "    For further information visit https://errors.pydantic.dev/2.14/v/x"
    log = [
        "pydantic_core._pydantic_core.ValidationError: 3 validation errors for SchedulerConfig",
        "max_num_batched_tokens",
        "  Input should be greater than or equal to 1 [type=greater_than_equal, input_value=-1]",
        further,
        "max_num_seqs",
        "  Input should be greater than or equal to 1 [type=greater_than_equal, input_value=-1]",
        further,
        "  Value error, The moon is wrong. [type=value_error, input_value=ArgsKwargs]",
        further,
        "RuntimeError: something of another process",
    ]
    found = diagnose_vllm("\n".join(log), Phase.START, 1)
    at_least = "Input should be greater than or equal to 1"
    assert found.cause == (
        f"max_num_batched_tokens: {at_least}; max_num_seqs: {at_least}; The moon is wrong."
    )
    assert found.learnt["config"] == "SchedulerConfig"
    assert found.learnt["fields"] == ["max_num_batched_tokens", "max_num_seqs"]
    assert found.learnt["problems"] == [at_least] * 2


@pytest.mark.parametrize(
    "envelope",
    [
        lambda text: json.dumps({"log": text + "\n", "stream": "stderr", "time": "2026-01-01"}),
        lambda text: json.dumps({"asctime": "x", "levelname": "ERROR", "message": text}),
        lambda text: json.dumps({"level": "error", "msg": "died", "exc_info": f"a:\n{text}"}),
    ],
)
def test_records_in_json_are_opened(envelope: object) -> None:
    assert callable(envelope)
    assert diagnose_vllm(envelope(OOM), Phase.START, 1).cause == OOM
    quiet = json.dumps({"levelname": "WARNING", "message": OOM})
    assert diagnose_vllm(quiet, Phase.START, None).cause == NO_CAUSE


def test_a_progress_bar_of_megabytes_and_its_cause() -> None:
    bar = "\r".join(f"Capturing CUDA graphs: {n}%|####" for n in range(8_000))
    assert diagnose_vllm(f"{bar}\r{OOM}", Phase.START, 1).verdict is Verdict.CAPACITY
    glued = "#" * 2_000_000 + OOM
    assert diagnose_vllm(glued, Phase.START, 1).learnt["rule"] == "device_out_of_memory"


DIAGNOSES = (diagnose_vllm, diagnose_transformers, diagnose_offline)
FRAGMENTS = st.sampled_from(
    [text.said for text in TEXTS]
    + [
        INFO,
        READY,
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in x',
        "    raise",
    ]
    + [
        '{"log": "\\ud800 Error", "levelname": 7}',
        '{"log": ',
        "\x1b[31m",
        "\0\0",
        "\ud800",
        "é\x85",
    ]
)
ANY_TEXT = st.one_of(
    st.text(max_size=300),
    st.binary(max_size=300).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.lists(st.one_of(FRAGMENTS, st.text(max_size=60)), max_size=8).map("\n".join),
    st.lists(FRAGMENTS, max_size=5).map("".join),
)


@settings(max_examples=150, deadline=None)
@given(ANY_TEXT, st.sampled_from(Phase), st.one_of(st.none(), st.integers(-70, 300)))
def test_any_text_has_a_diagnosis(text: str, phase: Phase, exit_code: int | None) -> None:
    for diagnose in DIAGNOSES:
        found = diagnose(text, phase, exit_code)
        assert found.phase is phase
        assert found.cause and len(found.cause) <= MAX_CAUSE_CHARS
        assert len(found.cause.splitlines()) == 1
        assert len(found.evidence) <= MAX_EVIDENCE_CHARS
        said = json.dumps([found.cause, found.evidence, dict(found.learnt)], ensure_ascii=False)
        said.encode("utf-8")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_lines_of_information_change_nothing(text: object, dice: random.Random) -> None:
    assert isinstance(text, tuple)
    lines = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    g()"]
    lines += [text[1]]
    plain = diagnose_vllm("\n".join(lines), Phase.START, 1)
    for _ in range(dice.randint(1, 5)):
        lines.insert(dice.randint(0, len(lines)), INFO)
    found = diagnose_vllm("\n".join(lines), Phase.START, 1)
    assert (found.verdict, found.cause, found.learnt) == (plain.verdict, plain.cause, plain.learnt)
