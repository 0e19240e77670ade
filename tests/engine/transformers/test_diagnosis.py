"""Texts of failed launches: as torch and transformers word them."""

from __future__ import annotations

import pytest

from sweeper.engine.transformers.diagnosis import diagnose_transformers
from sweeper.verdicts import Phase, Verdict

TRACEBACK = (
    'Traceback (most recent call last):\n  File "loading.py", line 1, in load\n    model()\n'
)

CASES: dict[str, tuple[str, Verdict, str]] = {
    "cuda": (
        TRACEBACK + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.38 GiB. GPU 0 "
        "has a total capacity of 23.64 GiB of which 1.19 GiB is free.",
        Verdict.CAPACITY,
        "device_memory",
    ),
    "cpu": (
        TRACEBACK + "RuntimeError: [enforce fail at alloc_cpu.cpp:124] err == 0. "
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000 bytes.",
        Verdict.CAPACITY,
        "host_memory",
    ),
    "cache": (
        TRACEBACK + "MemoryError: Memory footprint 900000 is more than available memory 800000",
        Verdict.CAPACITY,
        "cache_memory",
    ),
    "port": (
        TRACEBACK + "OSError: [Errno 98] Address already in use",
        Verdict.INFRA,
        "port_taken",
    ),
    "refused": (
        "Refused: max_num_seqs needs batching=static or continuous, and batching is none",
        Verdict.INFEASIBLE_CONFIG,
        "refused",
    ),
    "no torch": (
        TRACEBACK + "ModuleNotFoundError: No module named 'torch'",
        Verdict.INFRA,
        "engine_missing",
    ),
    "no extra": (
        TRACEBACK + "ModuleNotFoundError: No module named 'einops'",
        Verdict.INFEASIBLE_CONFIG,
        "module_missing",
    ),
    "attention": (
        TRACEBACK + "ImportError: FlashAttention2 has been toggled on, but it cannot be used due "
        "to the following error: the package flash_attn seems to be not installed.",
        Verdict.INFEASIBLE_CONFIG,
        "attention_missing",
    ),
    "architecture": (
        TRACEBACK + "ValueError: The checkpoint you are trying to load has model type `frob` but "
        "Transformers does not recognize this architecture.",
        Verdict.INFEASIBLE_CONFIG,
        "architecture_unknown",
    ),
    "weights": (
        TRACEBACK + "OSError: Error no file named model.safetensors, or pytorch_model.bin, found "
        "in directory /models/x.",
        Verdict.INFEASIBLE_CONFIG,
        "weights_missing",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_known_text_has_its_verdict(case: str) -> None:
    log, verdict, rule = CASES[case]
    found = diagnose_transformers(log, Phase.START, 1)
    assert (found.verdict, found.learnt["rule"]) == (verdict, rule)
    assert found.remedy


def test_figures_of_a_full_device_are_learnt() -> None:
    found = diagnose_transformers(CASES["cuda"][0], Phase.START, 1)
    assert found.learnt["asked_gib"] == 2.38
    assert found.learnt["memory_gib"] == 23.64


def test_a_full_device_under_load_is_a_crash_with_the_same_bounds() -> None:
    found = diagnose_transformers(CASES["cuda"][0], Phase.LOAD, 1)
    assert found.verdict is Verdict.CRASH_UNDER_LOAD
    assert found.learnt["asked_gib"] == 2.38


def test_an_unknown_text_is_told_as_it_is() -> None:
    found = diagnose_transformers(TRACEBACK + "KeyError: 'rope'", Phase.START, 1)
    assert found.verdict is Verdict.UNKNOWN
    assert "KeyError" in found.cause
