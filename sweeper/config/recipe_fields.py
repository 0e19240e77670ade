"""What a recipe may say: fields and values by tool and method. Pure data.

Only what the tool makes *and* vLLM reads is listed, so that nothing is made for hours that no
engine serves: vLLM 0.32 reads GPTQ with 4 and 8 bits and without zero points, and its kernels take
groups of 32, 64 and 128.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sweeper.config.schema import RecipeConfig
from sweeper.config.values import show

ENGINE, PUBLISHED = "engine", "published"
"""Tools that make no checkpoint: the engine quantizes while it loads; somebody made it already."""

AUTO = "auto"
PREFIX = "quantize."
"""Of space parameters that change a recipe's fields."""

SEARCHED = (
    "bits",
    "group_size",
    "symmetric",
    "act_order",
    "calibration",
    "calibration_samples",
)
"""Fields that a space may search."""

FIELDS = (*SEARCHED, "calibration_tokens")
"""All fields of a recipe that say how its checkpoint is made."""

Values = tuple[Any, ...]
Fields = Mapping[str, Values]
"""Field → values it may have, the one that is meant if none is given first; empty: any."""

GROUP_SIZES = (128, 64, 32)
PER_CHANNEL = -1

_GROUPS = (AUTO, *GROUP_SIZES)
_GROUPS_OR_CHANNEL = (*_GROUPS, PER_CHANNEL)
_CALIBRATED: Fields = {"calibration": (), "calibration_samples": (), "calibration_tokens": ()}
_AWQ: Fields = {"bits": (4,), "group_size": _GROUPS, "symmetric": (False,), **_CALIBRATED}
_GPTQ: Fields = {
    "bits": (4, 8),
    "group_size": _GROUPS_OR_CHANNEL,
    "symmetric": (True,),
    "act_order": (False, True),
    **_CALIBRATED,
}

TOOLS: Mapping[str, Mapping[str | None, Fields]] = {
    "autoawq": {None: _AWQ},
    "auto_gptq": {None: _GPTQ},
    "gptqmodel": {"gptq": _GPTQ, "awq": _AWQ},
    "llmcompressor": {
        "W4A16": {**_GPTQ, "symmetric": (True, False)},
        "W4A16_AWQ": {**_AWQ, "symmetric": (False, True)},
        "W4A8": {
            "bits": (4,),
            "group_size": _GROUPS_OR_CHANNEL,
            "symmetric": (True,),
            **_CALIBRATED,
        },
        "W8A8": {"bits": (8,), "symmetric": (True,), "act_order": (False, True), **_CALIBRATED},
        "FP8_DYNAMIC": {"bits": (8,)},
    },
}
"""Tools that make checkpoints: tool → method (None: it has only one) → fields."""

NAMES = (ENGINE, PUBLISHED, *TOOLS)


def is_made(recipe: RecipeConfig) -> bool:
    """Whether the recipe makes a checkpoint."""
    return recipe.tool in TOOLS


def fields_of(recipe: RecipeConfig) -> Fields:
    """Fields that a recipe with a known tool and method takes; none where nothing is made."""
    return TOOLS.get(recipe.tool, {}).get(recipe.method, {})


def has_choice(recipe: RecipeConfig, field: str) -> bool:
    """Whether there is anything to search in a field of a recipe."""
    return field in (fields := fields_of(recipe)) and len(fields[field]) != 1


def allows(fields: Fields, field: str, value: Any) -> bool:
    """Whether `value` is one that the field may have. True is not taken for 1."""
    if field not in fields:
        return False
    allowed = fields[field]
    return not allowed or any(type(one) is type(value) and one == value for one in allowed)


def taking(recipes: Mapping[str, RecipeConfig], field: str) -> list[str]:
    """Names of the recipes in which a field can be searched."""
    return [name for name, recipe in recipes.items() if has_choice(recipe, field)]


def listed(values: Iterable[Any]) -> str:
    """Values as one types them."""
    return ", ".join(show(value, quote=False) for value in values)
