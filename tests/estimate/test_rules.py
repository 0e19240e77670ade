"""Each rule refuses what the engine would certainly refuse, and nothing beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.compose import compose
from sweeper.estimate.facts import missing_models
from sweeper.estimate.rules import RULES, check
from sweeper.estimate.weights import FP8, INT8, QuantizedWeights
from sweeper.space.catalogue import KNOWN as CATALOGUE
from tests.estimate.facts import (
    A100,
    CPU,
    H100,
    QWEN3,
    QWEN7B,
    SMOLLM2,
    T4,
    V100,
    Engine,
    broken,
    draft,
    model,
)

TP = "tensor_parallel_size"
NGRAM = {"speculative": "ngram", "num_speculative_tokens": 3}
DRAFT = {"speculative": "draft_model", "num_speculative_tokens": 3}
AVX2, AVX512 = replace(CPU, cpu_features=("avx2",)), replace(CPU, cpu_features=("avx512f",))
GPTQ7B = model("qwen7b", quantization_method="gptq")
QWEN72B = model(
    "qwen7b", num_heads=64, num_kv_heads=8, hidden_size=8192, intermediate_size=29568, num_layers=80
)
ODD = model("smollm2", intermediate_size=1528)
MINE = QuantizedWeights("mine", 4, 128)
OWN = "quantize.recipes.mine.group_size"
AWQ, GPTQ, PACKED = ({"quantization": word} for word in ("awq", "gptq", "compressed-tensors"))


UNPACKING = Engine(name="transformers", version="5.0.0")


def made(**changes: Any) -> dict[str, Any]:
    """A recipe's checkpoint of 4 bits in groups of 128."""
    return {"weights": replace(MINE, **changes)}


INT8_ONLINE = {"quantization": "int8_per_channel_weight_only"}
SMALL_GROUPS = made(group_size=64)
ORDERED = made(act_order=True)

BROKEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("heads_divide", {TP: 8}, {}),
    ("heads_divide", {TP: 2}, {"model": SMOLLM2}),
    ("kv_heads_divide", {TP: 7}, {}),
    ("intermediate_divides", {TP: 8}, {"model": model("qwen3_8b", intermediate_size=12284)}),
    ("layers_cover_stages", {"pipeline_parallel_size": 29}, {}),
    ("group_divides", {"quantization": "awq", TP: 2}, {"model": QWEN72B}),
    ("group_divides", {"quantization": "gptq"}, {"model": SMOLLM2}),
    ("group_divides", {TP: 4}, {"model": model("qwen7b", quantization_group_size=256)}),
    ("group_divides", {**AWQ, TP: 2}, {"model": QWEN72B, **made()}),
    ("group_divides", AWQ, {"model": SMOLLM2, **made()}),
    ("group_divides", PACKED, {"model": SMOLLM2, **made()}),
    ("gptq_readable", GPTQ, ORDERED),
    ("gptq_readable", GPTQ, made(bits=3, made=False)),
    ("gptq_readable", GPTQ, made(symmetric=False, made=False)),
    ("act_order_sharded", {**GPTQ, TP: 2}, {**ORDERED, "engine": Engine(version="0.11.0")}),
    ("act_order_sharded", {**GPTQ, TP: 2}, {**ORDERED, "engine": None}),
    ("weight_only_on_cpu", AWQ, {"model": SMOLLM2, "hardware": AVX2, **SMALL_GROUPS}),
    ("weight_only_on_cpu", PACKED, {"hardware": AVX512, **made(bits=8)}),
    ("widths_on_cpu", GPTQ, {"model": ODD, "hardware": AVX512, **made(group_size=None)}),
    ("four_by_eight_on_gpu", PACKED, made(activations=INT8)),
    ("unpacked_by_transformers", AWQ, {"engine": UNPACKING, **made()}),
    ("unpacked_by_transformers", PACKED, {"engine": UNPACKING, **made(activations=INT8)}),
    ("experts_only", INT8_ONLINE, {"model": SMOLLM2, "hardware": CPU}),
    ("experts_only", INT8_ONLINE, {}),
    ("capability_suffices", PACKED, {"hardware": V100, **made(activations=FP8, group_size=None)}),
    ("length_within_model", {"max_model_len": 32769}, {}),
    ("length_holds_requests", {"max_model_len": 639}, {}),
    ("length_holds_requests", {}, {"required_tokens": 40000}),
    ("draft_vocabulary", DRAFT, {"draft": draft("qwen7b")}),
    ("draft_sharding", {**DRAFT, TP: 4}, {"draft": draft("qwen7b")}),
    ("checkpoint_method", {"quantization": "fp8_per_tensor"}, {"model": GPTQ7B}),
    ("model_named", DRAFT, {"missing": frozenset({"draft_model"})}),
    ("model_named", {**DRAFT, "speculative": "eagle"}, {"missing": frozenset({"eagle"})}),
    ("model_named", {"quantization": "awq"}, {"missing": frozenset({"awq"})}),
    ("counts_positive", {TP: 0}, {}),
    ("counts_positive", {"max_num_seqs": 0}, {}),
    ("counts_positive", {**NGRAM, "num_speculative_tokens": 0}, {}),
    ("memory_share", {"gpu_memory_utilization": 1.1}, {}),
    ("tokens_cover_seqs", {"max_num_batched_tokens": 128, "max_num_seqs": 256}, {}),
    ("tokens_cover_length", {"max_num_batched_tokens": 2048, "enable_chunked_prefill": False}, {}),
    (
        "tokens_cover_length",
        {"max_num_batched_tokens": 2048, "enable_chunked_prefill": False, "max_model_len": 4096},
        {},
    ),
    ("tokens_cover_speculation", {**NGRAM, "max_num_batched_tokens": 3}, {}),
    ("speculation_complete", {"speculative": "ngram"}, {}),
    ("devices_suffice", {TP: 4, "data_parallel_size": 4}, {}),
    ("devices_suffice", {TP: 4, "pipeline_parallel_size": 2, "data_parallel_size": 2}, {}),
    ("built_for_device", {"quantization": "fp8_per_tensor"}, {"model": SMOLLM2, "hardware": CPU}),
    ("kv_cache_on_cpu", {"kv_cache_dtype": "fp8"}, {"model": SMOLLM2, "hardware": AVX2}),
    ("capability_suffices", {"quantization": "fp8_per_tensor"}, {"hardware": V100}),
    ("capability_suffices", {"quantization": "nvfp4_per_token"}, {}),
    ("bfloat16_on_device", {"dtype": "bfloat16"}, {"hardware": T4}),
    ("quantization_dtype", {"quantization": "awq", "dtype": "float32"}, {}),
    ("renamed_method", {"quantization": "fp8"}, {}),
    ("weights_fit", {}, {"model": QWEN3, "hardware": T4}),
    ("weights_fit", {"gpu_memory_utilization": 0.1}, {}),
    ("memory_fits", {"max_model_len": 32768}, {"hardware": replace(H100, memory_gib=15.5)}),
    ("memory_fits", {"flag.kv_cache_memory_bytes": 2**30, "max_model_len": 32768}, {}),
]


@pytest.mark.parametrize(("rule", "parameters", "facts"), BROKEN)
def test_broken(rule: str, parameters: dict[str, Any], facts: dict[str, Any]) -> None:
    violation = broken(parameters, **facts)[rule]
    assert violation.cause
    assert violation.remedy
    assert "\n" not in violation.cause
    assert all(name in CATALOGUE for name in violation.parameters)


def test_every_rule_is_broken_once_above() -> None:
    assert {rule for rule, _, _ in BROKEN} == {rule.name for rule in RULES}


KEPT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    (PACKED, {"engine": UNPACKING, "hardware": AVX2, **made()}),
    (PACKED, {"engine": UNPACKING, "hardware": AVX2, **made(bits=8)}),
    ({TP: 4}, {}),
    ({TP: 4, "quantization": "awq"}, {}),  # 18944 / 4 / 128 = 37
    ({TP: 8}, {"model": QWEN3}),
    ({TP: 16}, {"model": QWEN3, "hardware": replace(H100, device_count=16)}),  # kv heads copied
    ({"max_model_len": 32768}, {}),
    ({"max_model_len": "auto"}, {}),
    ({"max_model_len": 640}, {}),
    (DRAFT, {"model": QWEN3, "draft": draft("qwen3_8b")}),
    (DRAFT, {}),  # an unknown draft is not proven wrong
    (NGRAM, {"missing": frozenset({"draft_model", "eagle", "awq"})}),
    ({"quantization": "awq"}, {"missing": frozenset({"gptq"})}),
    (
        {"quantization": "awq"},
        {"missing": frozenset({"awq"}), "model": model("qwen7b", quantization_method="awq")},
    ),
    ({"quantization": "gptq"}, {"model": GPTQ7B}),
    *((({**AWQ, TP: tp}), made()) for tp in (1, 2, 4)),
    (AWQ, {"model": SMOLLM2, "hardware": AVX512, **SMALL_GROUPS}),
    (AWQ, {"model": SMOLLM2, "hardware": CPU, **SMALL_GROUPS}),  # features unknown
    (AWQ, {"missing": frozenset({"awq"}), **made()}),  # a recipe needs no published one
    ({**GPTQ, TP: 2}, {"model": QWEN72B, **SMALL_GROUPS}),
    (GPTQ, made(act_order=True, group_size=None)),
    (GPTQ, {**ORDERED, "engine": Engine(version="0.11.0")}),
    ({**PACKED, TP: 2}, ORDERED),  # ordered once, which shards read well
    (GPTQ, made(bits=8)),
    (PACKED, {"hardware": AVX2, **made(activations=INT8, bits=8, group_size=None)}),
    (PACKED, {"hardware": AVX2, **made(activations=FP8, bits=8, group_size=None)}),  # plain torch
    (PACKED, {"hardware": T4, "model": SMOLLM2, **made(activations=FP8, group_size=None)}),
    ({**PACKED, "dtype": "float32"}, made()),
    (PACKED, {"model": model("qwen7b", num_experts=8, intermediate_size=100), **made()}),
    (PACKED, {"model": None, **made()}),
    ({"max_num_batched_tokens": 256, "max_num_seqs": 256}, {}),
    ({"max_num_batched_tokens": 512}, {}),  # chunked prefill is on by default
    ({"max_num_batched_tokens": 512, "enable_chunked_prefill": True}, {}),
    ({"enable_chunked_prefill": False}, {}),  # the engine's default then covers the length
    ({TP: 2, "pipeline_parallel_size": 2, "data_parallel_size": 2}, {}),
    ({"quantization": "fp8_per_tensor"}, {"hardware": A100}),  # weight-only through Marlin
    ({"kv_cache_dtype": "fp8"}, {"hardware": A100}),  # depends on the attention backend
    (INT8_ONLINE, {"model": model("smollm2", num_experts=8), "hardware": CPU}),
    (INT8_ONLINE, {"model": model("smollm2", architecture="ErnieMoeForCausalLM")}),
    (INT8_ONLINE, {"engine": Engine("mock", "1", "cpu"), "hardware": CPU}),
    ({"dtype": "float32"}, {"model": SMOLLM2, "hardware": CPU}),
    ({"dtype": "float16"}, {"hardware": V100}),
    ({"quantization": "compressed-tensors", "dtype": "float32"}, {}),
    ({"quantization": "fp8"}, {"model": model("qwen7b", quantization_method="fp8")}),
    ({"quantization": "fp8"}, {"engine": Engine(version="0.11.0")}),
    ({"quantization": "fp8_per_tensor"}, {"engine": Engine("mock", "1", "cpu")}),
    ({"data_parallel_size": 2}, {"model": SMOLLM2, "hardware": CPU}),
    ({"kv_cache_dtype": "fp8"}, {"model": SMOLLM2, "hardware": CPU}),  # features unknown
    ({"kv_cache_dtype": "fp8"}, {"model": SMOLLM2, "hardware": AVX512}),
    ({"max_model_len": 32768}, {"hardware": replace(H100, memory_gib=18.0)}),  # looks tight only
    ({}, {"hardware": replace(H100, memory_gib=15.5)}),  # the default length may be a shorter one
    ({"gpu_memory_utilization": 0.1, "flag.cpu_offload_gb": 10}, {}),
]


@pytest.mark.parametrize(("parameters", "facts"), KEPT)
def test_what_is_not_proven_wrong_is_left_to_the_engine(
    parameters: dict[str, Any], facts: dict[str, Any]
) -> None:
    assert broken(parameters, **facts) == {}


def test_messages_hold_the_numbers() -> None:
    heads = broken({TP: 8})["heads_divide"]
    assert "28 attention heads" in heads.cause
    assert "1, 2, 4, 7" in heads.remedy
    vocabulary = broken(DRAFT, draft=draft("qwen7b"))["draft_vocabulary"]
    assert "151936" in vocabulary.cause
    assert "152064" in vocabulary.cause
    groups = broken({"quantization": "awq", TP: 2}, model=QWEN72B)["group_divides"]
    assert "14784" in groups.cause
    assert groups.parameters == ("quantization", TP)
    devices = broken({TP: 4, "data_parallel_size": 4})["devices_suffice"]
    assert "4 * 4 = 16" in devices.cause


@pytest.mark.parametrize(
    ("weights", "facts", "remedy", "involved"),
    [
        (MINE, {"model": SMOLLM2}, f"{OWN}=64", ("quantization",)),
        (
            replace(MINE, searched=("quantize.group_size", "quantize.bits")),
            {"model": SMOLLM2},
            "quantize.group_size=64",
            ("quantization", "quantize.group_size"),
        ),
        (MINE, {"model": QWEN72B, "tp": 2}, f"{OWN}=64", ("quantization", TP)),
        (MINE, {"model": QWEN72B, "tp": 4}, f"{OWN}=32", ("quantization", TP)),
        (MINE, {"model": ODD}, "quantize=w8a8", ("quantization",)),
        (replace(MINE, made=False), {"model": SMOLLM2}, "a checkpoint with", ("quantization",)),
    ],
)  # fmt: skip
def test_a_group_size_that_does_not_divide_is_offered_its_nearest(
    weights: QuantizedWeights, facts: dict[str, Any], remedy: str, involved: tuple[str, ...]
) -> None:
    asked = {**AWQ, TP: facts.pop("tp", 1)}
    violation = broken(asked, weights=weights, **facts)["group_divides"]
    assert remedy in violation.remedy
    assert violation.parameters == involved
    assert "128" in violation.cause


def test_a_recipe_is_called_by_its_own_name() -> None:
    cause = broken(PACKED, hardware=V100, **made(activations=FP8))["capability_suffices"].cause
    assert "quantization=mine (compressed-tensors)" in cause


def test_a_format_without_a_checkpoint_can_be_made() -> None:
    missing = frozenset({"awq", "gptq", "compressed-tensors"})
    for asked, recipe in ((AWQ, "awq"), (GPTQ, "gptqmodel"), (PACKED, "w4a16")):
        violation = broken(asked, missing=missing)["model_named"]
        assert violation.remedy.endswith(f"add quantize={recipe}")


def test_missing_models_follow_the_configuration() -> None:
    qwen, llama = (missing_models(compose([f"model={m}"]).model) for m in ("qwen7b", "llama3_8b"))
    assert {"eagle", "compressed-tensors"} <= qwen
    assert not {"draft_model", "awq", "gptq"} & qwen
    assert {"draft_model", "awq"} <= llama
    assert "eagle" not in llama


words = st.sampled_from(["none", "auto", "x", "awq", "ngram", "draft_model", "float32"])
values = st.one_of(st.integers(-2, 64), st.floats(0, 2), st.booleans(), words)
names = st.sampled_from([*CATALOGUE, "flag.x"])


@settings(deadline=None)
@given(
    st.dictionaries(names, values, max_size=6),
    st.sampled_from([None, QWEN7B, SMOLLM2]),
    st.sampled_from([None, H100, T4, CPU]),
    st.sampled_from([None, draft("qwen7b")]),
)
def test_no_deployment_however_odd_breaks_the_rules_themselves(
    parameters: dict[str, Any], served: Any, hardware: Any, drafted: Any
) -> None:
    for violation in check(
        parameters, model=served, hardware=hardware, engine=None, draft=drafted, required_tokens=64
    ):
        assert violation.cause
        assert violation.remedy
