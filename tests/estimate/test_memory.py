"""Memory against what engines reported on real devices, and against published shapes.

The figures of GPUs are from logs in public reports and documentation: memory of the device as the
engine saw it, weights, what was left for the cache and how many tokens that was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import DOES_NOT, FITS, UNCERTAIN, MemoryVerdict, verdict
from sweeper.estimate.memory_part import ACTIVATIONS, DRAFT, GRAPHS, RUNTIME, SEQUENCE, WEIGHTS
from sweeper.estimate.memory_sizes import (
    GIB,
    kv_bytes_per_token,
    parameter_count,
    weight_bytes,
)
from sweeper.estimate.memory_work import batch_limits, captured_sizes
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts
from sweeper.models.read import facts_from_config
from tests.estimate.facts import A100, CPU, H100, QWEN3, QWEN7B, SMOLLM2, T4, Engine, draft, model

LLAMA8B = model("llama3_8b")
QWEN1_5B = facts_from_config(
    {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "num_hidden_layers": 28,
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
    }
)
MIXTRAL = facts_from_config(
    {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "tie_word_embeddings": False,
    }
)
GEMMA3 = facts_from_config(
    {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
        "sliding_window": 1024,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5
        + ["sliding_attention"] * 4,
    }
)
MINE = QuantizedWeights("mine", 4, 128, symmetric=False)
TP = "tensor_parallel_size"
EAGER = {"enforce_eager": True}


def gpu(name: str, driver_gib: float) -> HardwareFacts:
    return HardwareFacts("cuda", name, 8, driver_gib, compute_capability=(8, 0))


def part(found: MemoryVerdict, name: str) -> Any:
    return next(each for each in found.parts if each.name == name)


REPORTED = [
    # model, device, deployment, weights GiB, cache GiB, tokens
    (LLAMA8B, gpu("A100", 80.0), {"max_model_len": 8192}, 14.99, 54.93, None),
    (LLAMA8B, gpu("A10G", 22.49), {"max_model_len": 8192}, 14.9888, 4.60, 37_696),
    (LLAMA8B, gpu("A5000", 24.0), {**EAGER, "max_model_len": 2048}, None, 5.29, 43_296),
    (
        LLAMA8B,
        gpu("RTX 3090", 24.0),
        {"gpu_memory_utilization": 0.85, "max_model_len": 8192},
        14.9889,
        3.78,
        30_960,
    ),
    (
        QWEN1_5B,
        T4,
        {"gpu_memory_utilization": 0.5, "dtype": "float16"},
        2.8875,
        2.36,
        88_304,
    ),
    (
        QWEN3,
        gpu("2080 Ti", 22.0),
        {
            "gpu_memory_utilization": 0.93,
            TP: 4,
            "dtype": "float16",
            "enforce_eager": True,
            "max_num_batched_tokens": 8192,
        },
        3.85,
        14.49,
        422_052,
    ),
]  # fmt: skip


@pytest.mark.parametrize("report", REPORTED)
def test_what_engines_reported_lies_within_the_stated_error(report: Any) -> None:
    facts, device, deployment, weights, cache, tokens = report
    found = verdict({"gpu_memory_utilization": 0.9, **deployment}, facts, device)
    left = found.cache_gib
    assert left is not None
    assert left.least <= cache <= left.most
    assert left.expected == pytest.approx(cache, abs=1.0 + 0.02 * device.memory_gib)
    if weights is not None:
        loaded = part(found, WEIGHTS)
        assert loaded.least_gib <= weights <= loaded.most_gib
        assert loaded.expected_gib == pytest.approx(weights, rel=0.01)
    if tokens is not None:  # figures are rounded to hundredths, blocks to whole ones
        a_token = found.sequence.expected_gib / found.length_tokens
        assert a_token * tokens == pytest.approx(cache, abs=0.012)
    assert found.verdict != DOES_NOT or cache < found.sequence.least_gib


@pytest.mark.parametrize(
    ("facts", "deployment", "cache_gib", "tokens"),
    [
        (QWEN7B, {}, 53.18, 995_648),
        (QWEN7B, {}, 5.46, 102_288),
        (QWEN7B, {}, 3.70, 69_328),
        (SMOLLM2, {}, 0.78, 36_096),
        (SMOLLM2, {}, 4.82, 224_768),
        (SMOLLM2, {"dtype": "float32"}, 4.32, 100_608),
    ],
)
def test_tokens_that_engines_made_of_their_cache(
    facts: ModelFacts, deployment: dict[str, Any], cache_gib: float, tokens: int
) -> None:
    found = verdict({"max_model_len": 2048, **deployment}, facts, H100)
    assert found.sequence.expected_gib / 2048 * tokens == pytest.approx(cache_gib, abs=0.012)


def test_a_length_that_a_real_engine_refused() -> None:
    """ "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory"."""
    asked = {"gpu_memory_utilization": 0.9, "max_model_len": 131_072}
    found = verdict(asked, LLAMA8B, gpu("A10G", 22.49))
    assert found.sequence.expected_gib == pytest.approx(16.0)
    assert found.verdict == DOES_NOT
    assert found.margin_gib is not None
    assert found.margin_gib < -9
    # The engine named the longest that fits: what is uncertain is left to it.
    shorter = {**asked, "max_model_len": 36_864}
    assert verdict(shorter, LLAMA8B, gpu("A10G", 22.49)).verdict != DOES_NOT


def test_a_real_processor() -> None:
    """A start on 9.59 GiB: 1.92 GiB asked for, 1.14 used, 0.78 left for the cache."""
    machine = replace(CPU, memory_gib=9.59)
    found = verdict({"gpu_memory_utilization": 0.2, "max_model_len": 2048}, SMOLLM2, machine)
    left = found.cache_gib
    assert left is not None
    assert left.expected == pytest.approx(0.78, abs=0.1)
    assert left.least <= 0.78 <= left.most


@pytest.mark.parametrize(
    ("facts", "kib"),
    [
        (LLAMA8B, 128),
        (QWEN7B, 56),
        (QWEN3, 144),
        (MIXTRAL, 128),
        (replace(LLAMA8B, num_layers=80, full_layers=80), 320),
        (replace(QWEN7B, num_layers=61, full_layers=61, latent_width=576), 68.625),
    ],
    ids=["llama3_8b", "qwen7b", "qwen3_8b", "mixtral", "llama3_70b", "deepseek_v3"],
)
def test_cache_of_a_token_of_well_known_shapes(facts: ModelFacts, kib: float) -> None:
    context = Context({}, facts, None, None, None, 0)
    assert kv_bytes_per_token(facts, context) == kib * 1024
    found = verdict({"max_model_len": 4096}, facts, H100)
    assert found.sequence.expected_gib == pytest.approx(4096 * kib / 2**20)
    assert found.sequence.least_gib == pytest.approx(found.sequence.expected_gib)


@pytest.mark.parametrize(
    ("facts", "billions"),
    [(QWEN7B, 7.62), (QWEN3, 8.19), (SMOLLM2, 0.1345), (LLAMA8B, 8.03), (MIXTRAL, 46.7)],
)
def test_parameters_from_the_shape_match_the_published_count(
    facts: ModelFacts, billions: float
) -> None:
    assert parameter_count(facts) / 1e9 == pytest.approx(billions, rel=0.005)
    assert facts.parameters / 1e9 == pytest.approx(billions, rel=0.005)
    assert 0.95 * billions < facts.least_parameters / 1e9 <= billions


def test_cache_shares_of_devices() -> None:
    def sequence(**parameters: object) -> float:
        return verdict({"max_model_len": 1024, **parameters}, QWEN7B, H100).sequence.expected_gib

    assert sequence(kv_cache_dtype="fp8") == sequence() / 2
    assert sequence(tensor_parallel_size=4) == sequence() / 4
    assert sequence(tensor_parallel_size=8) == sequence() / 4  # heads are copied, not split further
    assert sequence(pipeline_parallel_size=2) == sequence() / 2
    assert sequence(block_size=1000) == pytest.approx(sequence() * 2000 / 1024)
    latent = replace(QWEN7B, latent_width=576)
    assert verdict({TP: 4, "max_model_len": 1024}, latent, H100).sequence.expected_gib == (
        pytest.approx(28 * 576 * 2 * 1024 / GIB)
    )


def test_a_window_bounds_the_cache_of_its_layers() -> None:
    assert (GEMMA3.full_layers, GEMMA3.window_layers, GEMMA3.window) == (5, 29, 1024)
    asked = {"max_model_len": 131_072, "max_num_batched_tokens": 2048}
    found = verdict(asked, GEMMA3, H100).sequence
    a_layer = 2 * 4 * 256 * 2 / GIB
    assert found.least_gib == pytest.approx((5 * 131_072 + 29 * 1024) * a_layer)
    assert found.expected_gib == pytest.approx((5 * 131_072 + 29 * 3072) * a_layer)
    assert found.most_gib is not None
    assert found.most_gib >= 34 * 131_072 * a_layer  # windows may be kept whole


def test_layers_of_unknown_kind_bound_nothing() -> None:
    facts = replace(QWEN7B, full_attention=False, full_layers=7, open_layers=21)
    found = verdict({"max_model_len": 32_768}, facts, H100)
    assert found.sequence.least_gib == pytest.approx(32_768 * 7 * 2048 / GIB)
    assert (found.sequence.most_gib, found.verdict) == (None, UNCERTAIN)
    sequences = found.sequences
    assert sequences is not None
    assert sequences.least == 0.0


def test_an_eight_bit_cache_may_come_with_somebody_elses_checkpoint() -> None:
    def least(**weights: Any) -> float:
        given = QuantizedWeights("x", 8, **weights) if weights else None
        asked = {"max_model_len": 4096}
        return verdict(asked, QWEN7B, H100, weights=given).sequence.least_gib

    assert least(made=False) == least() / 2
    assert least(made=True) == least()


def test_a_checkpoint_is_counted_by_its_bits_and_not_by_its_name() -> None:
    def weights_gib(name: str, **shape: Any) -> float:
        weights = QuantizedWeights(name, **shape)
        found = verdict({"quantization": name}, QWEN7B, H100, weights=weights)
        return float(part(found, WEIGHTS).expected_gib)

    assert weights_gib("mine", bits=4) == pytest.approx(weights_gib("w8x", bits=4))
    assert weights_gib("mine", bits=8) > weights_gib("mine", bits=4)
    # 16-bit scales of groups of 128 are an eighth of a bit more a weight; zero points come on top.
    grouped = weights_gib("mine", bits=4, group_size=128)
    share = (grouped - weights_gib("mine", bits=4)) / (
        weights_gib("mine", bits=8) - weights_gib("mine", bits=4)
    )
    assert share == pytest.approx(16 / 128 / 4)
    assert weights_gib("mine", bits=4, group_size=128, symmetric=False) > grouped
    assert weights_gib("mine", bits=4, group_size=32) > grouped


def test_weights_shrink_with_precision_and_ranks() -> None:
    def weights(**parameters: object) -> Any:
        return part(verdict(parameters, QWEN7B, H100), WEIGHTS)

    plain = weights()
    assert plain.expected_gib == pytest.approx(7.6156e9 * 2 / GIB, rel=0.001)
    assert weights(**{TP: 2}).expected_gib == pytest.approx(plain.expected_gib / 2, rel=0.002)
    eight, four = weights(quantization="fp8_per_tensor"), weights(quantization="awq")
    assert plain.expected_gib / 2 < eight.expected_gib < plain.expected_gib  # embeddings stay
    assert plain.expected_gib / 4 < four.expected_gib < eight.expected_gib
    assert weights(dtype="float32").least_gib == pytest.approx(plain.least_gib * 2)
    # Engines load a checkpoint in 32 bits as one in 16 unless asked.
    stored_wide = replace(QWEN7B, dtype="float32")
    assert part(verdict({}, stored_wide, H100), WEIGHTS).least_gib == plain.least_gib
    assert weights(quantization="never_heard_of").least_gib < plain.least_gib / 4
    assert weights(**{"flag.cpu_offload_gb": 4}).least_gib == 0.0
    assert weight_bytes(QWEN7B, "", "") / GIB == pytest.approx(plain.expected_gib, rel=0.001)


def test_what_is_not_known_of_a_family_proves_nothing() -> None:
    def loaded(**changes: Any) -> Any:
        return part(verdict({}, replace(QWEN7B, **changes), H100), WEIGHTS)

    known = loaded()
    assert loaded(least_parameters=10**9).least_gib == pytest.approx(2e9 / GIB)
    assert loaded(least_parameters=0).least_gib < 0.65 * known.expected_gib
    assert loaded(least_parameters=10**9).expected_gib == known.expected_gib


def test_experts_may_be_spread_over_replicas_of_a_model() -> None:
    alone = part(verdict({}, MIXTRAL, H100), WEIGHTS)
    spread = part(verdict({"data_parallel_size": 8}, MIXTRAL, H100), WEIGHTS)
    assert alone.expected_gib == pytest.approx(86.99, rel=0.005)
    assert spread.least_gib < spread.expected_gib < alone.least_gib / 4
    dense = part(verdict({"data_parallel_size": 8}, QWEN7B, H100), WEIGHTS)
    assert dense == part(verdict({}, QWEN7B, H100), WEIGHTS)


def test_a_draft_is_counted_but_proves_nothing() -> None:
    asked = {"speculative": "draft_model", "num_speculative_tokens": 3}
    known = verdict(asked, QWEN3, H100, draft=draft("qwen3_8b"))
    assert part(known, DRAFT).expected_gib == pytest.approx(0.596e9 * 2 / GIB, rel=0.01)
    assert part(known, DRAFT).least_gib == 0.0
    assert known.sequence.expected_gib > verdict({}, QWEN3, H100).sequence.expected_gib
    unknown = verdict(asked, QWEN3, H100)
    assert (part(unknown, DRAFT).most_gib, unknown.verdict) == (None, UNCERTAIN)
    head = part(verdict({**asked, "speculative": "eagle"}, LLAMA8B, H100), DRAFT)
    assert 0.3 < head.expected_gib < head.most_gib < 4
    ngram = verdict({"speculative": "ngram", "num_speculative_tokens": 3}, QWEN3, H100)
    assert all(each.name != DRAFT for each in ngram.parts)


def test_activations_follow_the_batch_and_graphs_the_sizes() -> None:
    def of(name: str, **parameters: object) -> float:
        return float(part(verdict(parameters, QWEN7B, A100), name).expected_gib)

    assert of(ACTIVATIONS, max_num_batched_tokens=32_768) > of(ACTIVATIONS)
    assert of(ACTIVATIONS, max_num_seqs=1024, max_num_batched_tokens=2048) > of(ACTIVATIONS)
    assert of(GRAPHS, enforce_eager=True) == 0.0
    assert of(GRAPHS, max_num_seqs=8) < of(GRAPHS, max_num_seqs=64) < of(GRAPHS)
    assert of(RUNTIME, tensor_parallel_size=2) > of(RUNTIME)
    # 51 sizes up to 512, and 35 up to 256, as the engine's log counts them.
    assert captured_sizes(256) == 51 + 35


def test_default_batches_are_those_of_the_device() -> None:
    def limits(device: HardwareFacts, **parameters: object) -> tuple[float, float]:
        found = batch_limits(Context(parameters, QWEN7B, device, None, None, 0))
        return found.tokens.expected, found.sequences.expected

    assert limits(H100) == (8192, 1024)
    assert limits(A100) == limits(T4) == (2048, 256)
    assert limits(replace(H100, memory_gib=178.0)) == (16_384, 1024)
    assert limits(CPU) == (2048, 128)
    assert limits(H100, max_num_batched_tokens=512) == (512, 512)
    assert limits(A100, enable_chunked_prefill=False) == (32_768, 256)
    assert limits(A100, **{"flag.performance_mode": "throughput"}) == (4096, 512)


def test_verdicts() -> None:
    assert verdict({}, QWEN7B, H100).verdict == FITS
    none_left = verdict({}, QWEN3, T4)
    assert none_left.verdict == DOES_NOT
    assert none_left.kv_tokens is not None
    assert none_left.kv_tokens.most == 0.0
    assert none_left.margin_gib is not None
    assert none_left.margin_gib < 0
    tight = verdict({}, QWEN7B, replace(H100, memory_gib=17.0))
    assert tight.verdict == UNCERTAIN
    assert verdict({"max_model_len": "auto"}, LLAMA8B, gpu("A10G", 22.49)).verdict == UNCERTAIN
    # Nothing is left beside a share of the whole device for what is not counted.
    assert verdict({"gpu_memory_utilization": 1.0}, QWEN7B, H100).verdict == UNCERTAIN


def test_graphs_lie_outside_the_share_of_older_engines() -> None:
    old = verdict({}, QWEN7B, A100, engine=Engine(version="0.11.0"))
    assert part(old, GRAPHS).expected_gib == 0.0
    new = verdict({}, QWEN7B, A100, engine=Engine(version="0.33.0"))
    assert part(new, GRAPHS).expected_gib > 0.0
    assert old.available_gib == pytest.approx(80 * 0.985 * 0.90)
    assert new.available_gib == pytest.approx(80 * 0.985 * 0.92)


def test_the_default_length_proves_only_what_requests_need() -> None:
    device = gpu("A10G", 22.49)
    assert verdict({}, LLAMA8B, device, 640).verdict == UNCERTAIN  # a tokenizer may limit it
    assert verdict({}, LLAMA8B, device, 120_000).verdict == DOES_NOT


def test_a_cache_of_a_given_size() -> None:
    given = verdict({"flag.kv_cache_memory_bytes": 4 * GIB, "max_model_len": 32_768}, QWEN7B, H100)
    assert given.verdict == FITS
    assert given.kv_tokens is not None
    assert given.kv_tokens.expected == pytest.approx(4 * GIB / 57_344, rel=0.001)
    short = verdict({"kv_cache_memory_bytes": GIB, "max_model_len": 32_768}, QWEN7B, H100)
    assert short.verdict == DOES_NOT
    assert short.margin_gib == pytest.approx(1 - 1.75)
    large = verdict({"kv_cache_memory_bytes": 70 * GIB}, QWEN7B, H100)
    assert large.verdict == DOES_NOT  # the share says nothing then, the device does
    words = verdict({"kv_cache_memory_bytes": "4G"}, QWEN7B, H100)
    assert (words.verdict, words.kv_tokens) == (UNCERTAIN, None)
    space = verdict({"env.VLLM_CPU_KVCACHE_SPACE": "1"}, SMOLLM2, CPU)
    assert space.cache_gib is not None
    assert space.cache_gib.expected == 1.0
    odd = verdict({"env.VLLM_CPU_KVCACHE_SPACE": "much"}, SMOLLM2, CPU)
    assert odd.verdict == UNCERTAIN


def test_unknown_memory_is_no_number() -> None:
    found = verdict({}, QWEN7B, HardwareFacts("remote", "elsewhere", 1, 0.0))
    assert found.verdict == UNCERTAIN
    assert (found.available_gib, found.margin_gib, found.kv_tokens) == (None, None, None)


def test_an_engine_without_a_cache_of_its_own_is_judged_by_its_weights() -> None:
    engine = Engine("transformers", "5.19.0", "cuda")
    assert verdict({}, QWEN7B, replace(H100, memory_gib=15.0), engine=engine).verdict == UNCERTAIN
    assert verdict({}, QWEN7B, replace(H100, memory_gib=12.0), engine=engine).verdict == DOES_NOT
    assert verdict({}, QWEN7B, H100, engine=engine).kv_tokens is None


def test_the_last_part_is_the_sequence_and_the_parts_add_up() -> None:
    found = verdict({}, QWEN7B, H100)
    assert found.parts[-1].name == SEQUENCE
    assert found.needed_gib == pytest.approx(sum(each.expected_gib for each in found.parts))
    assert found.margin_gib is not None
    assert found.most_needed_gib is not None
    assert found.margin_gib == pytest.approx(79.6 * 0.965 * 0.92 - found.most_needed_gib)
