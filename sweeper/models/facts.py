"""What arithmetic needs to know of a model, read from its config.json."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFacts:
    """Shape of a decoder-only language model.

    Attributes:
        architecture: class name in config.json (``architectures[0]``).
        num_layers: transformer blocks.
        hidden_size: width of the residual stream.
        intermediate_size: width of the feed-forward layer.
        num_heads: attention (query) heads.
        num_kv_heads: key/value heads.
        head_dim: width of one head.
        vocab_size: rows of the embedding.
        max_position_embeddings: longest sequence the model was made for, in tokens.
        dtype: stored precision, ``bfloat16`` and so on.
        tie_word_embeddings: whether input and output embeddings share weights.
        num_experts: experts of a mixture-of-experts model, 0 for a dense one.
        quantization_method: ``quantization_config.quant_method`` of the checkpoint, or None.
        quantization_group_size: its group size, or None.
        parameters: number of weights, estimated from the shape.
        experts_per_token: routed experts a token is sent to, 0 for a dense model or if not known.
        expert_parameters: weights of all routed experts of all layers, 0 as above.
        full_attention: False if some layer looks back over a window only, or keeps a state instead.
        latent_width: values a layer caches for a token where keys and values are compressed into
            one vector (multi-head latent attention), else 0.
        full_layers: layers that certainly cache every token, None if all do or nothing is known.
        window_layers: layers that cache the last `window` tokens, or at least those.
        window: in tokens.
        open_layers: layers that keep a state, or of which it is not known what they keep.
        least_parameters: number of weights there certainly are, 0 if nothing is known.
    """

    architecture: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    dtype: str
    tie_word_embeddings: bool
    num_experts: int = 0
    quantization_method: str | None = None
    quantization_group_size: int | None = None
    parameters: int = 0
    experts_per_token: int = 0
    expert_parameters: int = 0
    full_attention: bool = True
    latent_width: int = 0
    full_layers: int | None = None
    window_layers: int = 0
    window: int = 0
    open_layers: int = 0
    least_parameters: int = 0
