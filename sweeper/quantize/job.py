"""What making a checkpoint is asked for, and what comes of it. Plain data: it may run elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeper.quantize.recipe import Recipe


@dataclass(frozen=True)
class CheckpointJob:
    """A checkpoint to take from the cache, or to make.

    Attributes:
        recipe: how.
        model_path: the unquantized model, folder or hub id.
        model_digest: changes when the model does; None if not known (a hub model without a
            revision: then its id stands for it).
        revision: on the hub, or None.
        cache_dir: sweeper's cache.
        python: interpreter with the tool; None for an environment made with uv.
        device: auto | cpu | cuda.
        timeout_s: for making it.
        memory_gib: host memory that the tool's processes may take; None takes nine tenths of what
            is free when it starts.
        cache_limit_gib: see `QuantizeConfig`.
        trust_remote_code: whether the model may run code of its own.
    """

    recipe: Recipe
    model_path: str
    model_digest: str | None
    cache_dir: Path
    timeout_s: float
    revision: str | None = None
    python: str | None = None
    device: str = "auto"
    memory_gib: float | None = None
    cache_limit_gib: float | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint on this machine.

    Attributes:
        path: its folder.
        key: its name in the cache, 16 hex digits of everything that decides its content.
        size_bytes: of its weight files.
        digest: of the content of its files, 32 hex digits.
        facts: what the cache's manifest says: recipe, tool versions, model, seconds it took.
        reused: True if it was there before.
    """

    path: Path
    key: str
    size_bytes: int
    digest: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    reused: bool = False
