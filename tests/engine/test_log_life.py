"""How far a server got, from its log; and logs in which nothing went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.log_life import explain
from sweeper.engine.transformers.diagnosis import diagnose_transformers
from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.verdicts import Diagnosis, Phase, Verdict

DATA = Path(__file__).parent / "data"
BEGIN = "(APIServer pid=1) INFO 11-29 20:42:37 [api_utils.py:286] non-default args: {'port': 8123}"
READY = "INFO:     Application startup complete."
ANSWER = 'INFO:     127.0.0.1:47010 - "POST /v1/completions HTTP/1.1" 200 OK'
STOP = "(APIServer pid=1) INFO 11-29 20:44:58 [a.py:254] [shutdown] API server: shutdown triggered"
REFUSAL = "ValueError: No available memory for the cache blocks."
OOM = "(EngineCore pid=2) ERROR 11-29 20:44:00 [a.py:1] torch.OutOfMemoryError: CUDA out of memory."
FATAL = (
    "(EngineCore pid=2) ERROR 11-29 20:44:00 [core.py:1512] EngineCore encountered a fatal error."
)
DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
REQUEST_ERROR = (
    "(APIServer pid=1) ERROR 11-29 20:44:00 [serving_chat.py:1] Error in preprocessing prompt\n"
    "(APIServer pid=1) ERROR 11-29 20:44:00 [chat.py:1] Traceback (most recent call last):\n"
    '(APIServer pid=1) ERROR 11-29 20:44:00 [serving_chat.py:1]   File "a.py", line 1, in f\n'
    "(APIServer pid=1) ERROR 11-29 20:44:00 [serving_chat.py:1]     raise ValueError(\n"
    "(APIServer pid=1) ERROR 11-29 20:44:00 [serving_chat.py:1] jinja2.exceptions.TemplateError: no"
)


def explained(*lines: str) -> Diagnosis:
    return explain("\n".join(lines), diagnose_vllm, NO_CAUSE)


@pytest.mark.parametrize(
    ("lines", "verdict", "phase"),
    [
        ((BEGIN, REFUSAL), Verdict.CAPACITY, Phase.START),
        ((BEGIN, READY, FATAL, OOM), Verdict.CRASH_UNDER_LOAD, Phase.WARMUP),
        ((BEGIN, READY, ANSWER, FATAL, OOM, DEAD), Verdict.CRASH_UNDER_LOAD, Phase.LOAD),
        ((BEGIN, READY, ANSWER, OOM), Verdict.CRASH_UNDER_LOAD, Phase.LOAD),
        ((ANSWER, FATAL, OOM, DEAD), Verdict.CRASH_UNDER_LOAD, Phase.LOAD),
        ((BEGIN, READY, ANSWER, FATAL, "KeyError: 'x'"), Verdict.CRASH_UNDER_LOAD, Phase.LOAD),
        ((BEGIN, READY, ANSWER, FATAL, OOM, STOP), Verdict.CRASH_UNDER_LOAD, Phase.LOAD),
        ((BEGIN, READY, "OSError: [Errno 28] voll"), Verdict.INFRA, Phase.WARMUP),
        ((BEGIN, REFUSAL, BEGIN, READY, ANSWER), Verdict.OK, Phase.LOAD),
        ((BEGIN, READY, ANSWER, FATAL, OOM, BEGIN, REFUSAL), Verdict.CAPACITY, Phase.START),
        ((BEGIN, READY, ANSWER, STOP), Verdict.OK, Phase.STOP),
        ((BEGIN, READY, ANSWER, STOP, "KeyError: 'on the way out'", DEAD), Verdict.OK, Phase.STOP),
        ((BEGIN, READY), Verdict.OK, Phase.WARMUP),
        ((BEGIN, READY, ANSWER, REQUEST_ERROR, ANSWER), Verdict.OK, Phase.LOAD),
        ((BEGIN, "ImportError: an optional part", READY, ANSWER), Verdict.OK, Phase.LOAD),
        ((BEGIN,), Verdict.UNKNOWN, Phase.START),
    ],
)
def test_phase_and_verdict_come_from_the_log(
    lines: tuple[str, ...], verdict: Verdict, phase: Phase
) -> None:
    found = explained(*lines)
    assert (found.verdict, found.phase) == (verdict, phase)


def test_no_failure_is_called_none() -> None:
    assert explained(BEGIN, READY, ANSWER).cause == (
        "no failure found: the server was ready and still ran where the log ends"
    )
    assert "was asked to end" in explained(BEGIN, READY, STOP).cause
    assert "TemplateError: no" in explained(BEGIN, READY, ANSWER, REQUEST_ERROR).cause


def test_a_log_that_ends_too_early_says_where() -> None:
    found = explained(BEGIN, "(Worker pid=3) INFO 11-29 20:44:00 [x.py:1] Loading weights")
    assert found.cause.endswith("with: Loading weights")
    assert "137" in found.remedy


@pytest.mark.parametrize("text", ["", "\n\n", "   \n\r\n", "\0"])
def test_an_empty_log_is_called_empty(text: str) -> None:
    found = explain(text, diagnose_vllm, NO_CAUSE)
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, "the log is empty")


def test_the_log_of_a_real_server_that_was_stopped_has_no_failure() -> None:
    log = (DATA / "vllm_0_32_cpu_start.log").read_text()
    found = explain(log, diagnose_vllm, NO_CAUSE)
    assert (found.verdict, found.phase) == (Verdict.OK, Phase.STOP)


SCARY = [
    "(APIServer pid=2654) WARNING 11-29 20:42:37 [system_utils.py:255] Found ulimit of 20000. This "
    "can cause fd limit errors like `OSError: [Errno 24] Too many open files`.",
    "(EngineCore pid=2) WARNING 11-29 20:42:37 [shm_broadcast.py:1] No available shared memory "
    "broadcast block found in 60 seconds. This typically happens when some processes are hanging",
    "(Worker pid=3) WARNING 11-29 20:43:59 [kv_cache.py:1] Using KV cache scaling factor 1.0 for "
    "fp8_e4m3. This may cause accuracy issues.",
    "(Worker pid=3) WARNING 11-29 20:44:01 [utils.py:597] Failed to create oneDNN linear, fallback "
    "to torch linear. Exception: could not create a primitive",
    "[W1129 20:43:59.498138112 utils.cpp:68] Warning: CUDA out of memory is near (function init)",
    "[rank0]:[W502 23:41:23.622182416 ProcessGroupNCCL.cpp:1575] Warning: WARNING: "
    "destroy_process_group() was not called, NCCL error: none (function operator())",
    "site-packages/x.py:24: FutureWarning: NotImplementedError: will be raised in the next version",
    "2025-02-11 21:35:17,102 WARNING services.py:1996 -- WARNING: The object store is using /tmp "
    "because /dev/shm has only 67108864 bytes available: No space left on device",
    '{"levelname": "WARNING", "message": "CUDA out of memory while tuning, smaller one taken"}',
    "WARNING:root:torch.OutOfMemoryError: CUDA out of memory. retried",
    "INFO 11-29 20:44:38 [x.py:1] retry after NCCL error: unhandled system error (see)",
]


def test_scary_warnings_are_no_failures() -> None:
    for lines in ([BEGIN, *SCARY], [BEGIN, READY, ANSWER, *SCARY], [BEGIN, READY, *SCARY, STOP]):
        assert explained(*lines).cause.startswith("no failure found")
    assert diagnose_vllm("\n".join(SCARY), Phase.LOAD, None).cause == NO_CAUSE


def test_a_transformers_server_is_read_likewise() -> None:
    log = "listening on port 4711\ntorch.OutOfMemoryError: CUDA out of memory."
    found = explain(log, diagnose_transformers, NO_CAUSE)
    assert (found.verdict, found.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.WARMUP)
    found = explain("listening on port 4711", diagnose_transformers, NO_CAUSE)
    assert found.verdict is Verdict.OK
