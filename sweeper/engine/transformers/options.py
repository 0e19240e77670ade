"""`engine.options` of the transformers engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.engine.options import read_options
from sweeper.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class TransformersOptions:
    """What holds for every launch and is not searched.

    Attributes:
        device: `auto` takes the GPU where torch sees one.
        random_weights: the model folder holds only config.json and a tokenizer, and weights are
            drawn on the device. Speed is that of the real model, output means nothing.
        weights_seed: seed of random weights, so that every launch has the same.
    """

    device: str = "auto"
    random_weights: bool = False
    weights_seed: int = 0


def transformers_options(options: Mapping[str, Any]) -> TransformersOptions:
    """Read `engine.options`. Raises ConfigError for what it does not know."""
    read = read_options(TransformersOptions, options)
    if read.device not in DEVICES:
        raise ConfigError(
            f"engine.options.device={read.device!r} is no device",
            f"use one of {', '.join(DEVICES)}",
        )
    return read
