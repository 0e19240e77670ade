"""The matrices of a dense decoder that are quantized, and which group sizes divide them. Pure.

Every linear layer of a block is quantized; embeddings and the output head never are. A group is a
run of input features that share a scale, so the input width of each layer must be a whole number of
groups, on each rank where tensor parallelism cuts the input.
"""

from __future__ import annotations

from dataclasses import dataclass

from sweeper.models.facts import ModelFacts

SIZES = (128, 64, 32)
"""Group sizes that kernels have, best known first: larger ones cost less memory."""


@dataclass(frozen=True)
class Linear:
    """Layers of one shape.

    Attributes:
        name: for messages.
        inputs, outputs: features, on all ranks together; outputs of layers that the engine fuses
            are added up.
        cuts_inputs: whether tensor parallelism cuts the inputs, else the outputs.
    """

    name: str
    inputs: int
    outputs: int
    cuts_inputs: bool = False

    def inputs_on(self, ranks: int) -> int | None:
        """Input features of one rank, None if they cannot be cut evenly."""
        return _cut(self.inputs, ranks) if self.cuts_inputs else self.inputs

    def outputs_on(self, ranks: int) -> int | None:
        """Output features of one rank, None if they cannot be cut evenly."""
        return self.outputs if self.cuts_inputs else _cut(self.outputs, ranks)


def _cut(width: int, ranks: int) -> int | None:
    return width // ranks if ranks >= 1 and width % ranks == 0 else None


def quantized_layers(model: ModelFacts | None) -> tuple[Linear, ...]:
    """The layers of a block as an engine holds them; empty where the facts do not tell them.

    That is so for mixtures of experts, whose facts may give the width of one expert or of the dense
    layers, and for compressed attention.
    """
    if model is None or model.num_experts or model.latent_width:
        return ()
    heads = model.num_heads * model.head_dim
    kv_heads = model.num_kv_heads * model.head_dim
    return (
        Linear("feed-forward", model.intermediate_size, model.hidden_size, cuts_inputs=True),
        Linear("attention output", heads, model.hidden_size, cuts_inputs=True),
        Linear("attention", model.hidden_size, heads + 2 * kv_heads),
        Linear("first feed-forward", model.hidden_size, 2 * model.intermediate_size),
    )


def undivided(layers: tuple[Linear, ...], group_size: int, ranks: int = 1) -> Linear | None:
    """The first layer whose part on a rank is not a whole number of groups.

    A layer that cannot be cut evenly at all is another rule's.
    """
    for layer in layers:
        inputs = layer.inputs_on(ranks)
        if inputs is not None and inputs % group_size:
            return layer
    return None


def largest_group(
    layers: tuple[Linear, ...], ranks: int = 1, sizes: tuple[int, ...] = SIZES
) -> int | None:
    """The first of `sizes` that divides every layer on every rank, None if none does."""
    return next((size for size in sizes if undivided(layers, size, ranks) is None), None)
