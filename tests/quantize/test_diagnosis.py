from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.quantize.diagnosis import MAX_CAUSE_CHARS, Circumstances, explain
from sweeper.quantize.rules import RULES
from sweeper.toolchain.worker import EndKind, WorkerEnd
from sweeper.verdicts import Phase, Verdict

AROUND = Circumstances("autoawq", memory_gib=6.0, timeout_s=900.0)
CAPACITY, INFEASIBLE, INFRA = Verdict.CAPACITY, Verdict.INFEASIBLE_CONFIG, Verdict.INFRA
UNKNOWN = Verdict.UNKNOWN


def failed(message: str, kind: str = "failed") -> WorkerEnd:
    return WorkerEnd(EndKind.FAILED, error=kind, message=message)


@pytest.mark.parametrize(
    ("message", "rule", "verdict"),
    [
        (
            "ImportError: cannot import name 'PytorchGELUTanh' from 'transformers.activations'",
            "autoawq_transformers",
            INFRA,
        ),
        (
            "ValueError: Tokenizer class TokenizersBackend does not exist or is not currently "
            "imported.",
            "old_transformers",
            INFEASIBLE,
        ),
        ("TypeError: gemma9 isn't supported yet.", "architecture_not_quantizable", INFEASIBLE),
        (
            "ValueError: The checkpoint you are trying to load has model type `x` but Transformers "
            "does not recognize this architecture.",
            "architecture_not_quantizable",
            INFEASIBLE,
        ),
        (
            "ValueError: 576 is not divisible by group size 128",
            "group_size_not_divisible",
            INFEASIBLE,
        ),
        (
            "ValueError: in_features must be divisible by group_size",
            "group_size_not_divisible",
            INFEASIBLE,
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "quantize_gpu_memory",
            CAPACITY,
        ),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 1 bytes.",
            "quantize_memory",
            CAPACITY,
        ),
        (
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co')",
            "hub_unreachable",
            INFRA,
        ),
        (
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
            "hub_unreachable",
            INFRA,
        ),
        (
            "OSError: You are trying to access a gated repo. 403 Client Error.",
            "model_gated",
            INFRA,
        ),
        ("HTTPError: 401 Client Error: Unauthorized for url", "model_gated", INFRA),
        (
            "OSError: org/none is not a local folder and is not a valid model identifier",
            "model_missing",
            INFEASIBLE,
        ),
        (
            "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
            "weights_damaged",
            INFRA,
        ),
        ("OSError: Error no file named model.safetensors found", "weights_missing", INFEASIBLE),
        ("OSError: [Errno 28] No space left on device", "disk_full", INFRA),
        ("KeyError: 'rope'", "quantize_failed", UNKNOWN),
    ],
)
def test_what_libraries_say(message: str, rule: str, verdict: Verdict) -> None:
    """In the worker's own words, and in the log of one that died without any."""
    for end, log in (
        (failed(message), ""),
        (WorkerEnd(EndKind.DIED, exit_code=1), f"Traceback:\n  File 'a'\n{message}\n"),
    ):
        found = explain(end, log, AROUND)
        assert (found.verdict, found.learnt["rule"]) == (verdict, rule)
        assert found.phase == Phase.QUANTIZE
        assert found.cause == message
        assert found.remedy


@pytest.mark.parametrize(
    ("kind", "rule", "verdict"),
    [
        ("no_cuda", "no_cuda", INFEASIBLE),
        ("unsupported", "quantize_unsupported", INFEASIBLE),
        ("memory", "quantize_memory", CAPACITY),
        ("calibration", "calibration", INFEASIBLE),
        ("missing", "no_environment", INFRA),
    ],
)
def test_what_a_worker_says_of_its_own_end(kind: str, rule: str, verdict: Verdict) -> None:
    found = explain(failed("as it is", kind), "ConnectionError: retrying", AROUND)
    assert (found.verdict, found.learnt["rule"]) == (verdict, rule)
    assert "as it is" in found.cause


def test_a_rule_may_know_more_than_the_kind() -> None:
    gpu = explain(failed("OutOfMemoryError: CUDA out of memory.", "memory"), "", AROUND)
    assert gpu.learnt["rule"] == "quantize_gpu_memory"
    group = explain(failed("576 is not divisible by group size 128", "unsupported"), "", AROUND)
    assert group.learnt["rule"] == "group_size_not_divisible"
    # Another verdict is not more: the worker knows best what kind of end it was.
    other = explain(failed("No space left on device", "unsupported"), "", AROUND)
    assert other.learnt["rule"] == "quantize_unsupported"


@pytest.mark.parametrize(
    ("end", "rule", "verdict", "says"),
    [
        (
            WorkerEnd(EndKind.NO_ENVIRONMENT, message="no solution found"),
            "no_environment",
            INFRA,
            "no solution found",
        ),
        (WorkerEnd(EndKind.TIMED_OUT, exit_code=-9), "quantize_timeout", INFRA, "900 s"),
        (
            WorkerEnd(EndKind.OUT_OF_MEMORY, message="it took 7.25 GiB of memory"),
            "quantize_memory",
            CAPACITY,
            "7.25 GiB",
        ),
        (WorkerEnd(EndKind.DIED, exit_code=-9), "quantize_memory", CAPACITY, "killed"),
        (WorkerEnd(EndKind.DIED, exit_code=-11), "quantize_failed", UNKNOWN, "exit code -11"),
        # It had said its word; that it was then slow to exit, and killed, is no lack of memory.
        (
            WorkerEnd(EndKind.FAILED, error="failed", message="strange", exit_code=-9),
            "quantize_failed",
            UNKNOWN,
            "strange",
        ),
    ],
)
def test_how_it_ended(end: WorkerEnd, rule: str, verdict: Verdict, says: str) -> None:
    found = explain(end, "WARNING: CUDA out of memory in another process", AROUND)
    assert (found.verdict, found.learnt["rule"]) == (verdict, rule)
    assert says in found.cause
    assert found.evidence == "WARNING: CUDA out of memory in another process"


def test_remedies_name_what_helps() -> None:
    def remedy(kind: EndKind) -> str:
        return explain(WorkerEnd(kind), "", AROUND).remedy

    assert "quantize.python=" in remedy(EndKind.NO_ENVIRONMENT)
    assert "quantize.timeout_s" in remedy(EndKind.TIMED_OUT)
    assert "quantize.memory_gib" in remedy(EndKind.OUT_OF_MEMORY)


def test_memory_is_told_in_figures() -> None:
    end = WorkerEnd(EndKind.OUT_OF_MEMORY, message="make_x.py took 7.25 GiB of memory")
    learnt = explain(end, "", AROUND).learnt
    assert learnt["needed_memory_gib"] == 7.25
    assert learnt["available_memory_gib"] == 6.0


def test_a_full_disk_is_the_machines_however_it_ended() -> None:
    end = WorkerEnd(EndKind.NO_ENVIRONMENT, message="uv failed")
    found = explain(end, "error: No space left on device (os error 28)", AROUND)
    assert (found.learnt["rule"], found.learnt["scope"]) == ("disk_full", "machine")


def test_only_what_gives_up_counts_in_the_log() -> None:
    log = "warning: ConnectionError seen, trying again\nValueError: strange"
    found = explain(WorkerEnd(EndKind.DIED, exit_code=1), log, AROUND)
    assert (found.verdict, found.cause) == (UNKNOWN, "ValueError: strange")


@given(st.text(), st.text(), st.sampled_from(EndKind), st.sampled_from(["", "failed", "memory"]))
def test_any_text_has_a_diagnosis(message: str, log: str, kind: EndKind, error: str) -> None:
    found = explain(WorkerEnd(kind, error=error, message=message), log, AROUND)
    assert found.phase == Phase.QUANTIZE
    assert found.cause and "\n" not in found.cause and len(found.cause) <= MAX_CAUSE_CHARS
    assert found.remedy and found.learnt["rule"]
    assert found.verdict is not Verdict.OK


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
