"""Kinds of texts that no rule lists: what the engine itself calls unimplemented or invalid."""

from __future__ import annotations

import pytest

from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.log_life import explain
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


SITE = "/opt/venv/lib/python3.11/site-packages"


def raised(path: str, said: str, before: str = "") -> str:
    return (
        f"{before}Traceback (most recent call last):\n"
        f'  File "{path}", line 9, in check\n'
        "    raise it\n"
        f"{said}\n{WRAPPER}"
    )


@pytest.mark.parametrize(
    "path",
    [
        f"{SITE}/vllm/config/model.py",
        f"{SITE}/vllm/config.py",
        f"{SITE}/vllm/engine/arg_utils.py",
        f"{SITE}/vllm/platforms/cuda.py",
        f"{SITE}/vllm/model_executor/layers/linear.py",
        f"{SITE}/vllm/model_executor/models/llama.py",
        f"{SITE}/vllm/v1/attention/backends/flash_attn.py",
    ],
)
@pytest.mark.parametrize("said", ["ValueError: the moon is wrong", "AssertionError: 7 and 3"])
def test_a_check_of_the_configuration_is_a_refusal_whatever_it_says(path: str, said: str) -> None:
    found = diagnose_vllm(raised(path, said), Phase.START, 1)
    assert (found.verdict, found.learnt["rule"]) == (
        Verdict.INFEASIBLE_CONFIG,
        "refused_by_engine",
    )
    assert found.cause == said.partition(": ")[2]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        # Elsewhere the same class may be of the moment, and so may be what these words are about.
        (f"{SITE}/vllm/v1/worker/gpu_worker.py", "AssertionError: 7 and 3"),
        (f"{SITE}/vllm/distributed/parallel_state.py", "AssertionError: 7 and 3"),
        (f"{SITE}/vllm/model_executor/model_loader/weight_utils.py", "ValueError: no file"),
        (f"{SITE}/torch/nn/modules/module.py", "ValueError: the moon is wrong"),
        ("/home/u/config/vllm.py", "ValueError: the moon is wrong"),
        (f"{SITE}/vllm/config/model.py", "ValueError: connection to the hub timed out"),
        # A mistake in the code raises these as well.
        (f"{SITE}/vllm/config/model.py", "KeyError: 'moon'"),
        (f"{SITE}/vllm/config/model.py", "TypeError: 'moon'"),
    ],
)
def test_what_may_be_of_the_moment_stays_unknown(path: str, said: str) -> None:
    assert diagnose_vllm(raised(path, said), Phase.START, 1).verdict is Verdict.UNKNOWN


def test_a_refusal_that_another_exception_led_to_stays_unknown() -> None:
    log = raised(f"{SITE}/vllm/config/model.py", "ValueError: no", "OSError: a disk is asleep\n")
    found = diagnose_vllm(log, Phase.START, 1)
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, "OSError: a disk is asleep")


def test_a_block_size_is_no_lock() -> None:
    log = raised(f"{SITE}/vllm/config/cache.py", "ValueError: block_size 7 is wrong")
    assert diagnose_vllm(log, Phase.START, 1).verdict is Verdict.INFEASIBLE_CONFIG


def test_once_it_was_ready_a_check_refuses_a_request_and_not_the_configuration() -> None:
    log = "INFO:     Application startup complete.\n" + raised(
        f"{SITE}/vllm/model_executor/layers/linear.py", "ValueError: the moon is wrong"
    ).removesuffix(WRAPPER)
    found = explain(log, diagnose_vllm, NO_CAUSE)
    assert found.verdict is Verdict.OK
    assert "rule" not in diagnose_vllm(log, Phase.LOAD, 1).learnt
