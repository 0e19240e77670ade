"""Which flags and values an installed vLLM takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.engine.flag_check import AskedFlag, Refusal, Rename
from sweeper.engine.vllm.checking import Installed, check
from sweeper.engine.vllm.cli import parse_help

DATA = Path(__file__).parent / "data"
METHODS = ("ngram", "draft_model", "eagle", "eagle3", "mtp")
QUANTIZATION = (
    "awq",
    "fp8",
    "fp8_per_tensor",
    "int8_per_channel_weight_only",
    "compressed-tensors",
)


def installed(version: str, name: str) -> Installed:
    flags = tuple(
        replace(flag, choices=QUANTIZATION)
        if flag.name == "quantization" and not flag.choices
        else replace(flag, choices=("FLASH_ATTN", "FLASHINFER"), any_case=True)
        if flag.name == "attention_backend"
        else flag
        for flag in parse_help((DATA / name).read_text())
    )
    return Installed(f"vLLM {version}", version, flags, METHODS)


NOW = installed("0.32.0", "help_0_32_cpu.txt")
OLD = installed("0.11.0", "help_0_11.txt")


def arg(name: str, value: Any) -> AskedFlag:
    return AskedFlag(f"engine.args.{name}", f"flag.{name}", value)


def refusal(asked: AskedFlag, engine: Installed = NOW) -> Refusal | None:
    found = check([asked], engine).refusals
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_num_seqs", 8),
        ("max-num-seqs", 8),
        ("--max-num-seqs", 8),
        ("max_model_len", "8k"),
        ("max_model_len", "auto"),
        ("max_model_len", -1),
        ("enforce_eager", False),
        ("no_enable_prefix_caching", True),
        ("disable_log_stats", True),
        ("api_server_count", 2),
        ("hf_token", True),
        ("hf_token", "secret"),
        ("kv_cache_dtype", "fp8"),
        ("dtype", "half"),
        ("block_size", 32.0),
        ("max_lora_rank", 16),
        ("tokenizer_mode", "one_of_a_plugin"),
        ("attention_backend", "flashinfer"),
        ("compilation_config.mode", 3),
        ("compilation_config", {"mode": 3}),
        ("hf_overrides", '{"rope_scaling": {}}'),
        ("cudagraph_capture_sizes", [1, 2, 4]),
        ("collect_detailed_traces", ["model", "worker"]),
        ("speculative_config", {"method": "ngram", "num_speculative_tokens": 2}),
        ("speculative_config", '{"method": "[ngram]"}'),
        ("speculative_config", {"model": "x", "num_speculative_tokens": 2}),
        ("device_memory_utilization", 0.9),
        ("seed", -5),
    ],
)
def test_what_the_engine_takes(name: str, value: Any) -> None:
    assert refusal(arg(name, value)) is None


@pytest.mark.parametrize(
    ("name", "value", "cause", "remedy"),
    [
        ("swap_space", 4, "--swap-space was removed in vLLM 0.18", "nothing replaces it"),
        ("disable_log_requests", True, "--disable-log-requests was", "--no-enable-log-requests"),
        ("task", "generate", "--task was removed in vLLM 0.13", "--runner"),
        ("guided_decoding_backend", "xgrammar", "was removed", "--structured-outputs-config"),
        ("rope_scaling", "{}", "was removed", "--hf-overrides"),
        ("num_scheduler_steps", 8, "was removed", "nothing replaces it"),
        ("use_v2_block_manager", True, "was removed", "nothing replaces it"),
        ("speculative_model", "m", "was removed", "--speculative-config"),
        ("enable_reasoning", True, "was removed", "--reasoning-parser"),
        ("gpu_memory_utilisation", 0.9, "has no flag", "gpu_memory_utilization"),
        ("tp", 2, "has no flag --tp", "tensor_parallel_size"),
        ("quux", 2, "has no flag --quux", "leave it out"),
        ("compilation_confg.mode", 3, "has no flag", "compilation_config"),
        ("port", 9, "set by every launch itself", "leave it out"),
    ],
)
def test_flags_that_are_not_there(name: str, value: Any, cause: str, remedy: str) -> None:
    found = refusal(arg(name, value))
    assert found is not None
    assert cause in found.problem.cause
    assert remedy in found.problem.remedy
    assert found.ends_study
    assert found.problem.unknown


@pytest.mark.parametrize(
    ("name", "value", "cause", "remedy"),
    [
        ("kv_cache_dtype", "fp9", "vLLM 0.32.0 has no kv_cache_dtype=fp9", "did you mean"),
        ("quantization", "none", "has no quantization=none", "it has: awq"),
        ("quantization", "bitsandbytes", "has no quantization=bitsandbytes", "plugin"),
        ("attention_backend", "XFORMERS", "has no attention_backend", "FLASH"),
        ("performance_mode", "troughput", "has no performance_mode", "throughput"),
        ("tensor_parallel_size", 0, "not a whole number from 1", "1 or more"),
        ("max_num_seqs", -4, "not a whole number from 1", "1 or more"),
        ("max_num_seqs", 2.5, "not a whole number", "1 or more"),
        ("max_num_seqs", "many", "not a number", "number"),
        ("max_model_len", 0, "not a whole number from 1", "1 or more"),
        ("gpu_memory_utilization", 1.2, "not a share", "up to 1"),
        ("gpu_memory_utilization", 0, "not a share", "above 0"),
        ("device_memory_utilization", 2, "not a share", "up to 1"),
        ("max_num_seqs", True, "needs a value", "value"),
        ("enforce_eager", "yes", "takes true or false", "true or false"),
        ("enforce_eager", 1, "takes true or false", "true or false"),
        ("disable_log_stats", False, "only be given or left out", "leave it out"),
        ("hf_token", False, "cannot be set to false", "leave it out"),
        ("no_enable_prefix_caching", False, "takes no value", "enable_prefix_caching: true"),
        ("speculative_config", {"method": "eagl3"}, "no speculative method eagl3", "eagle3"),
        ("speculative_config", "ngram", "no JSON object", "mapping"),
    ],
)
def test_values_that_the_engine_does_not_take(
    name: str, value: Any, cause: str, remedy: str
) -> None:
    found = refusal(arg(name, value))
    assert found is not None
    assert cause in found.problem.cause
    assert remedy in found.problem.remedy
    assert not found.problem.unknown


def test_one_choice_of_many_does_not_end_the_study() -> None:
    found = refusal(AskedFlag("space.parameters.dtype", "dtype", "int3", optional=True))
    assert found is not None
    assert not found.ends_study
    unknown = AskedFlag("space.parameters.flag.quux", "flag.quux", 1, optional=True)
    assert refusal(unknown).ends_study  # type: ignore[union-attr]


def test_a_flag_that_is_not_there_is_named_once_for_all_its_values() -> None:
    asked = [AskedFlag("space.parameters.flag.quux", "flag.quux", n, True) for n in (1, 2, 3)]
    assert len(check(asked, NOW).refusals) == 1


def test_all_problems_are_told_at_once() -> None:
    asked = [arg("swap_space", 4), arg("max_num_seqs", 0), arg("enforce_eager", True)]
    assert [r.asked.key for r in check(asked, NOW).refusals] == [
        "engine.args.swap_space",
        "engine.args.max_num_seqs",
    ]


def test_speculation_in_a_space_is_one_flag() -> None:
    def of(method: str, engine: Installed) -> Refusal | None:
        return refusal(AskedFlag("space.parameters.speculative", "speculative", method), engine)

    assert of("ngram", NOW) is None
    assert of("eagle", NOW) is None
    assert "no speculative method suffix" in of("suffix", NOW).problem.cause  # type: ignore[union-attr]
    tokens = AskedFlag("space.parameters.num_speculative_tokens", "num_speculative_tokens", 3)
    assert refusal(tokens) is None
    before = installed("0.8.0", "help_0_6.txt")
    assert "--speculative-config" in of("ngram", before).problem.cause  # type: ignore[union-attr]


def test_a_flag_of_an_older_version_is_there() -> None:
    for name, value in [("swap_space", 4), ("task", "generate"), ("disable_log_requests", True)]:
        assert refusal(arg(name, value), OLD) is None
    assert refusal(arg("performance_mode", "throughput"), OLD) is not None


@pytest.mark.parametrize(
    ("asked", "engine", "given"),
    [
        (("quantization", "fp8"), NOW, "fp8_per_tensor"),
        (("quantization", "int8"), NOW, "int8_per_channel_weight_only"),
        (("quantization", "fp8_per_tensor"), OLD, "fp8"),
        (("attention_backend", "FLASH_ATTN_VLLM_V1"), NOW, "FLASH_ATTN"),
    ],
)
def test_renamed_words_are_checked_under_their_new_name(
    asked: tuple[str, str], engine: Installed, given: str
) -> None:
    found = check([arg(*asked)], engine)
    assert found.refusals == ()
    assert [(r.parameter, r.asked, r.given) for r in found.renames] == [(*asked, given)]


def test_a_word_twice_is_one_rename() -> None:
    asked = [
        arg("quantization", "fp8"),
        AskedFlag("space.fixed.quantization", "quantization", "fp8"),
    ]
    rename = Rename("quantization", "fp8", "fp8_per_tensor", online=True)
    assert check(asked, NOW).renames == (rename,)


def test_a_flag_without_effect_is_told() -> None:
    (note,) = check([arg("disable_cascade_attn", True)], NOW).notes
    assert "engine.args.disable_cascade_attn" in note
    assert "no effect" in note
    assert check([arg("max_num_seqs", 4)], NOW).notes == ()


def test_unknown_help_refuses_only_what_every_version_refuses() -> None:
    blind = Installed("vLLM 0.32.0", "0.32.0", None)
    assert refusal(arg("quux", 1), blind) is None
    assert refusal(arg("kv_cache_dtype", "fp9"), blind) is None
    assert refusal(arg("tensor_parallel_size", 0), blind) is not None
    assert refusal(arg("port", 1), blind) is not None


def test_arguments_of_a_function_have_no_other_form() -> None:
    offline = replace(NOW, command_line=False)
    assert refusal(arg("max_num_seqs", 4), offline) is None
    for name in ("no_enable_prefix_caching", "compilation_config.mode"):
        found = refusal(arg(name, True), offline)
        assert found is not None
        assert found.problem.unknown


@settings(deadline=None, max_examples=60)
@given(
    st.text(min_size=1, max_size=20),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.lists(st.integers(), max_size=3),
        st.dictionaries(st.text(max_size=3), st.integers()),
    ),
)
def test_anything_is_answered(name: str, value: Any) -> None:
    for asked in (arg(name, value), arg("max_num_seqs", value), arg("speculative_config", value)):
        for found in check([asked], NOW).refusals:
            assert found.problem.cause
            assert found.problem.remedy
