"""Which layers are quantized, and what divides them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.estimate.shapes import SIZES, Linear, largest_group, quantized_layers, undivided
from tests.estimate.facts import QWEN7B, SMOLLM2, model

QUICK = settings(max_examples=100, deadline=None)
WIDTHS = st.integers(1, 64).map(lambda number: 16 * number)
LAYERS = st.lists(
    st.builds(Linear, st.just("layer"), WIDTHS, WIDTHS, st.booleans()), min_size=1, max_size=4
).map(tuple)


def test_the_layers_of_a_block_as_an_engine_fuses_them() -> None:
    shapes = {(layer.inputs, layer.outputs) for layer in quantized_layers(SMOLLM2)}
    assert shapes == {(1536, 576), (576, 576), (576, 576 + 2 * 192), (576, 2 * 1536)}


@pytest.mark.parametrize(
    "facts",
    [None, model("qwen7b", num_experts=8), model("qwen7b", latent_width=576)],
    ids=["unknown", "experts", "latent"],
)
def test_shapes_that_are_not_known_refuse_nothing(facts: object) -> None:
    assert quantized_layers(facts) == ()  # type: ignore[arg-type]
    assert largest_group(()) == SIZES[0]


@pytest.mark.parametrize(
    ("facts", "ranks", "largest"),
    [
        (SMOLLM2, 1, 64),
        (QWEN7B, 1, 128),
        (QWEN7B, 4, 128),
        (model("qwen7b", hidden_size=8192, num_heads=64, intermediate_size=29568), 2, 64),
        (model("qwen7b", hidden_size=8192, num_heads=64, intermediate_size=29568), 4, 32),
        (model("smollm2", intermediate_size=1000), 1, None),
    ],
)
def test_the_largest_group(facts: object, ranks: int, largest: int | None) -> None:
    assert largest_group(quantized_layers(facts), ranks) == largest  # type: ignore[arg-type]


@QUICK
@given(LAYERS, st.sampled_from(SIZES), st.sampled_from([1, 2, 3, 4, 8]))
def test_a_group_divides_every_part_or_names_one_that_it_does_not(
    layers: tuple[Linear, ...], group: int, ranks: int
) -> None:
    odd = undivided(layers, group, ranks)
    parts = [part for layer in layers if (part := layer.inputs_on(ranks)) is not None]
    assert (odd is None) == all(part % group == 0 for part in parts)
    if odd is not None:
        assert (odd.inputs_on(ranks) or 0) % group


@QUICK
@given(LAYERS, st.sampled_from([1, 2, 4]))
def test_what_is_offered_divides_and_nothing_larger_does(
    layers: tuple[Linear, ...], ranks: int
) -> None:
    found = largest_group(layers, ranks)
    for size in SIZES:
        if found is None or size > found:
            assert undivided(layers, size, ranks) is not None
    if found is not None:
        assert undivided(layers, found, ranks) is None
