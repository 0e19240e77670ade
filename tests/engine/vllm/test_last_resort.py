"""Kinds of texts that no rule lists: what the engine itself calls unimplemented or invalid."""

from __future__ import annotations

from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.verdicts import Phase, Verdict

WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above."


def test_what_has_no_implementation_is_no_mystery() -> None:
    refusal = "ERROR 11-29 21:09:15 [x.py:1] NotImplementedError: Needs a left hand."
    log = f"{refusal}\n{WRAPPER}"
    found = diagnose_vllm(log, Phase.START, 1)
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert "left hand" in found.cause


def test_an_unlisted_refusal_of_the_configuration_keeps_the_engines_words() -> None:
    log = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
        "  Value error, The moon is wrong. [type=value_error, input_value=ArgsKwargs]\n"
        "    For further information visit https://errors.pydantic.dev/2.14/v/value_error\n"
    )
    found = diagnose_vllm(log, Phase.START, 1)
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert found.cause == "The moon is wrong."


def test_a_listed_cause_further_down_goes_before_a_kind() -> None:
    log = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
        "  Value error, Total number of attention heads (9) must be divisible by tensor parallel "
        "size (2). [type=value_error, input_value=ArgsKwargs]\n"
    )
    assert diagnose_vllm(log, Phase.START, 1).learnt["num_heads"] == 9


def test_fp8_kv_cache_on_a_processor_without_kernels() -> None:
    log = "NotImplementedError: FP8 KV cache on CPU requires x86 with AVX-512 or AMX."
    found = diagnose_vllm(log, Phase.START, 1)
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert found.learnt["rule"] == "fp8_kv_cache_on_cpu"
