from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.errors import ModelError
from sweeper.models.embedded import SMOLLM2
from sweeper.models.read import facts_from_config, read_config
from tests.models.fakes import LLAMA, QWEN7B_CONFIG

QWEN7B: dict[str, Any] = {**QWEN7B_CONFIG, "tie_word_embeddings": False}
MIXTRAL = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
}
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "n_layer": 12,
    "n_embd": 768,
    "n_head": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}


@pytest.mark.parametrize(
    ("config", "parameters"),
    [(SMOLLM2.config, 134_515_008), (QWEN7B, 7_615_616_512), (MIXTRAL, 46_702_792_704)],
)
def test_parameters_are_exact_for_known_models(config: dict[str, Any], parameters: int) -> None:
    assert facts_from_config(config).parameters == parameters


DEEPSEEK_V3 = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
    "tie_word_embeddings": False,
}


def test_latent_attention_and_experts_with_dense_first_layers() -> None:
    facts = facts_from_config(DEEPSEEK_V3)
    assert facts.parameters == pytest.approx(671e9, rel=0.001)  # as published
    assert facts.latent_width == 576
    assert facts.expert_parameters == 58 * 256 * 3 * 7168 * 2048
    met = facts.expert_parameters * (1 - facts.experts_per_token / facts.num_experts)
    # 37 billion weights work on a token, as published; the input embedding is looked up only.
    working = facts.parameters - met - 129280 * 7168
    assert working == pytest.approx(37e9, rel=0.02)


def test_experts_in_some_layers_only() -> None:
    every = {**MIXTRAL, "num_experts_per_tok": 2}
    assert facts_from_config(every).expert_parameters == 32 * 8 * 3 * 4096 * 14336
    half = facts_from_config({**every, "decoder_sparse_step": 2})
    assert half.expert_parameters == 16 * 8 * 3 * 4096 * 14336
    fewer = facts_from_config({**every, "mlp_only_layers": [0, 5]})
    assert fewer.expert_parameters == 30 * 8 * 3 * 4096 * 14336
    assert facts_from_config(MIXTRAL).expert_parameters == 0  # how many a token meets is not said
    assert facts_from_config(LLAMA).experts_per_token == 0


@pytest.mark.parametrize(
    ("change", "full"),
    [
        ({}, True),
        ({"sliding_window": 4096}, False),
        ({"sliding_window": 4096, "use_sliding_window": False}, True),
        ({"sliding_window": 32768}, True),
        ({"sliding_window": None}, True),
        ({"layer_types": ["full_attention"] * 28}, True),
        ({"layer_types": ["full_attention", "sliding_attention"] * 14}, False),
        ({"layer_types": ["linear_attention", "full_attention"] * 14}, False),
        ({"attention_chunk_size": 8192}, False),
    ],
)
def test_whether_all_layers_look_back_fully(change: dict[str, Any], full: bool) -> None:
    assert facts_from_config({**QWEN7B, **change}).full_attention is full


def test_other_spellings_and_family_defaults() -> None:
    facts = facts_from_config(GPT2)
    assert (facts.num_layers, facts.hidden_size, facts.intermediate_size) == (12, 768, 3072)
    assert facts.num_kv_heads == 12
    assert facts.tie_word_embeddings
    assert facts.parameters == pytest.approx(124_439_808, rel=0.002)


def test_defaults_of_head_width_and_kv_heads() -> None:
    config = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    facts = facts_from_config(config)
    assert (facts.head_dim, facts.num_kv_heads, facts.dtype) == (16, 4, "float16")


def test_a_stated_head_width_wins() -> None:
    assert facts_from_config({**LLAMA, "head_dim": 32}).head_dim == 32


def test_the_language_part_of_a_multimodal_model() -> None:
    outer = {"architectures": ["VisionForConditionalGeneration"], "hidden_size": 9999}
    facts = facts_from_config({**outer, "text_config": LLAMA})
    assert facts.architecture == "VisionForConditionalGeneration"
    assert (facts.hidden_size, facts.num_heads) == (64, 4)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"quant_method": "awq", "group_size": 128}, ("awq", 128)),
        ({"quant_method": "gptq", "group_size": -1}, ("gptq", None)),
        ({"quant_method": "fp8"}, ("fp8", None)),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
            },
            ("compressed-tensors", 32),
        ),
        (None, (None, None)),
    ],
)
def test_quantized_checkpoints(section: Any, expected: tuple[str | None, int | None]) -> None:
    facts = facts_from_config({**LLAMA, "quantization_config": section})
    assert (facts.quantization_method, facts.quantization_group_size) == expected


@pytest.mark.parametrize(
    "field",
    [
        "num_hidden_layers",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
    ],
)
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(ModelError, match=field):
        facts_from_config({k: v for k, v in LLAMA.items() if k != field})


@given(
    st.one_of(
        st.integers(max_value=0), st.text(), st.booleans(), st.floats(), st.lists(st.integers())
    )
)
def test_a_field_that_is_no_positive_number_is_named(value: Any) -> None:
    with pytest.raises(ModelError, match="hidden_size"):
        facts_from_config({**LLAMA, "hidden_size": value})


@given(
    layers=st.integers(1, 128),
    heads=st.integers(1, 128),
    width=st.integers(1, 256),
    experts=st.integers(0, 64),
)
def test_more_of_anything_is_never_fewer_parameters(
    layers: int, heads: int, width: int, experts: int
) -> None:
    def parameters(**change: int) -> int:
        shape = {"num_hidden_layers": layers, "num_attention_heads": heads, "head_dim": width}
        shape |= {"num_key_value_heads": heads, "num_experts": experts}
        return facts_from_config({**LLAMA, **shape, **change}).parameters

    base = parameters()
    assert parameters(num_hidden_layers=layers + 1) > base
    assert parameters(head_dim=width + 1) > base
    assert parameters(num_experts=experts + 1) > base


def test_a_truncated_config_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA)[:60])
    with pytest.raises(ModelError, match=r"config\.json is not valid JSON"):
        read_config(path)


@pytest.mark.parametrize("text", ["{}", "[]", '"llama"', '{"hidden_size": 3}'])
def test_a_file_that_describes_no_model_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ModelError, match="describes no model"):
        read_config(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="cannot be read"):
        read_config(path)
