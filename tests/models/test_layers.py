"""Which layers keep what, and how many weights there are for certain."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.models.layers import CacheLayers, cache_layers, certain_parameters
from sweeper.models.read import facts_from_config

FULL, WINDOW, STATE = "full_attention", "sliding_attention", "linear_attention"
SMALL = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
}


@pytest.mark.parametrize(
    ("fields", "fully", "kept"),
    [
        ({}, True, CacheLayers(4)),
        ({"sliding_window": 512}, False, CacheLayers(0, 4, 512)),
        ({}, False, CacheLayers(0, open=4)),
        ({"mamba_d_state": 16}, False, CacheLayers(0, open=4)),
        (
            {"layer_types": [WINDOW, FULL] * 2, "sliding_window": 512},
            False,
            CacheLayers(2, 2, 512),
        ),
        ({"layer_types": [WINDOW, FULL] * 2}, False, CacheLayers(2, open=2)),
        ({"layer_types": [STATE] * 3 + [FULL]}, False, CacheLayers(1, open=3)),
        ({"num_kv_shared_layers": 2}, True, CacheLayers(2)),
        ({"use_cla": True, "cla_share_factor": 2}, True, CacheLayers(2)),
        ({"use_cla": False, "cla_share_factor": 2}, True, CacheLayers(4)),
        ({"sliding_window": True}, False, CacheLayers(0, open=4)),
    ],
)
def test_layers_by_what_they_keep(fields: dict[str, Any], fully: bool, kept: CacheLayers) -> None:
    assert cache_layers(fields, 4, fully) == kept


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 0.97),
        ({"model_type": "never_heard_of"}, 0.6),
        ({"hybrid_override_pattern": "M-M*"}, None),
        ({"block_configs": [{}]}, None),
        ({"interleave_moe_layer_step": 2}, None),
        ({"interleave_moe_layer_step": 1}, 0.97),
        ({"moe_layer_freq": [0, 1, 1, 1]}, None),
        ({"moe_layer_freq": 1}, 0.97),
    ],
)
def test_weights_there_are_for_certain(changes: dict[str, Any], share: float | None) -> None:
    found = certain_parameters({**SMALL, **changes}, 10_000, 640)
    assert found == (640 if share is None else int(10_000 * share))


def test_facts_carry_both() -> None:
    facts = facts_from_config({**SMALL, "layer_types": [WINDOW, FULL] * 2, "sliding_window": 512})
    assert (facts.full_layers, facts.window_layers, facts.window, facts.open_layers) == (
        2,
        2,
        512,
        0,
    )
    assert facts.least_parameters == int(facts.parameters * 0.97)
