"""Finishing touches after composition: what one group's choice means for another."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from sweeper.config.edits import edit_space
from sweeper.config.overrides import Override
from sweeper.config.schema import ModelConfig, SpaceConfig, SweeperConfig

CHECKPOINTS = "checkpoints"
"""Word among the choices of `quantization` that stands for the model's published checkpoints."""


def adjust(cfg: SweeperConfig, overrides: list[Override]) -> None:
    """Name a model given by its path, edit the space, expand checkpoints. In place."""
    given = {override.key for override in overrides}
    if cfg.model.path and cfg.model.name == "custom" and "model.name" not in given:
        cfg.model.name = name_from_path(cfg.model.path)
    edit_space(cfg.space, overrides)
    expand_checkpoints(cfg.space, cfg.model)


def name_from_path(path: str) -> str:
    """Short name of a model: the last part of its path, safe for file names."""
    last = PurePosixPath(path.rstrip("/")).name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.") or "model"


def expand_checkpoints(space: SpaceConfig, model: ModelConfig) -> None:
    """Replace the word `checkpoints` by the names in `model.checkpoints`."""
    parameter = space.parameters.get("quantization")
    choices = parameter.get("choices") if isinstance(parameter, dict) else parameter
    if not isinstance(choices, list) or CHECKPOINTS not in choices:
        return
    own = [choice for choice in choices if choice != CHECKPOINTS]
    choices[:] = own + [name for name in model.checkpoints if name not in own]
