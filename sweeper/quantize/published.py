"""Checkpoints that somebody else made: whether they are there, and what their config.json says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweeper.config.recipe_fields import PUBLISHED, is_made
from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError
from sweeper.estimate.weights import FP8, INT8, QuantizedWeights
from sweeper.models.hub import cached_snapshot, is_hub_id
from sweeper.quantize.recipe import BUILTIN

GGUF = "gguf"


def check_paths(cfg: SweeperConfig) -> None:
    """Refuse recipes whose checkpoint or calibration file is not on this machine.

    Raises:
        ConfigError: names the key.
    """
    for name, recipe in cfg.quantize.recipes.items():
        where = f"quantize.recipes.{name}"
        if recipe.tool == PUBLISHED and recipe.path is not None:
            _check_checkpoint(f"{where}.path", recipe.path)
        if is_made(recipe) and recipe.calibration not in (None, BUILTIN):
            _check_texts(f"{where}.calibration", str(recipe.calibration))
    key = "quantize.calibration"
    form = cfg.space.parameters.get(key)
    choices = form.get("choices", []) if isinstance(form, Mapping) else form or []
    for choice in choices:
        if choice not in (None, "default", BUILTIN):
            _check_texts(f"space.parameters.{key}", str(choice))


def _check_texts(key: str, path: str) -> None:
    if not Path(path).expanduser().is_file():
        what = "is a folder" if Path(path).expanduser().is_dir() else "does not exist"
        raise ConfigError(
            f"{key}={path}: the file {what}",
            f"give a text or JSON-lines file, or {BUILTIN} for the texts that come with sweeper",
        )


def _check_checkpoint(key: str, path: str) -> None:
    local = Path(path).expanduser()
    if local.is_dir() and not (local / "config.json").is_file():
        raise ConfigError(
            f"{key}={path}: the folder has no config.json",
            "give a folder in the transformers format, a GGUF file, or a hub id",
        )
    if local.exists() or (is_hub_id(path) and not is_gguf(path)):
        return
    raise ConfigError(
        f"{key}={path}: there is no such file or folder, and it is not a hub id of the form "
        "org/name",
        "check the spelling",
    )


def is_gguf(path: str) -> bool:
    """Whether a checkpoint is a GGUF file, by its name."""
    return path.lower().endswith(".gguf")


def served_path(path: str) -> str:
    """A local checkpoint by its absolute path, because a server starts in a folder of its own."""
    local = Path(path).expanduser()
    return str(local.absolute()) if local.exists() else path


def published_weights(name: str, path: str) -> tuple[str | None, QuantizedWeights | None]:
    """(the engine's word for its format, its weights), as far as files on this machine tell.

    Args:
        name: value of `quantization` that serves it.
        path: folder, GGUF file or hub id.
    """
    if is_gguf(path):
        return GGUF, None
    local = Path(path).expanduser()
    folder = local if local.is_dir() else cached_snapshot(path, None) if is_hub_id(path) else None
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8")) if folder else {}
    except (OSError, ValueError):
        return None, None
    section = config.get("quantization_config") if isinstance(config, dict) else None
    if not isinstance(section, Mapping) or not section.get("quant_method"):
        return None, None
    return str(section["quant_method"]), _weights(name, section)


def _weights(name: str, section: Mapping[str, Any]) -> QuantizedWeights | None:
    """Weights of a config's `quantization_config`, None for a format that is not known here."""
    inner = _first_group(section)
    bits = _first(inner, "bits", "w_bit", "num_bits")
    if not isinstance(bits, int):
        return None
    group = _first(inner, "group_size", "q_group_size")
    zero_point = inner.get("zero_point")
    return QuantizedWeights(
        name=name,
        bits=bits,
        group_size=group if isinstance(group, int) and group > 0 else None,
        symmetric=not zero_point
        if zero_point is not None
        else _first(inner, "sym", "symmetric") is not False,
        act_order=inner.get("desc_act") is True,
        activations=_activations(section),
        made=False,
    )


def _first(section: Mapping[str, Any], *names: str) -> Any:
    return next((section[name] for name in names if section.get(name) is not None), None)


def _first_group(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """compressed-tensors keeps a section for each group of layers; they are mostly all alike."""
    for group in _groups(section):
        weights = group.get("weights")
        if isinstance(weights, Mapping):
            return weights
    return section


def _activations(section: Mapping[str, Any]) -> str | None:
    for group in _groups(section):
        inputs = group.get("input_activations")
        if isinstance(inputs, Mapping) and inputs.get("num_bits") == 8:
            return FP8 if inputs.get("type") == "float" else INT8
    return None


def _groups(section: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    groups = section.get("config_groups")
    found = groups.values() if isinstance(groups, Mapping) else ()
    return [group for group in found if isinstance(group, Mapping)]
