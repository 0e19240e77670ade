"""What keeps a checkpoint from being made, known without starting anything. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.config.recipe_fields import Fields, allows, listed
from sweeper.estimate.shapes import Linear, quantized_layers
from sweeper.estimate.violation import Violation
from sweeper.models.facts import ModelFacts
from sweeper.quantize.recipe import Recipe
from sweeper.quantize.tools import format_of, tool

Finding = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True)
class Making:
    """One checkpoint that is to be made.

    Attributes:
        recipe: with everything filled in.
        asked: fields that the deployment itself sets.
        fields: what the recipe's tool takes.
        model: shape of the unquantized model, None if unknown.
        device: ``auto``, ``cpu`` or ``cuda``, where it is to be made.
        machine: ``cpu`` or ``cuda``, what the machine has.
    """

    recipe: Recipe
    asked: Mapping[str, Any]
    fields: Fields
    model: ModelFacts | None
    device: str
    machine: str

    @property
    def word(self) -> str:
        return f"quantization={self.recipe.name}"

    def involved(self, *fields: str) -> tuple[str, ...]:
        return ("quantization", *(f"quantize.{field}" for field in fields if field in self.asked))


def violations(making: Making) -> list[Violation]:
    """Every rule that a checkpoint breaks, empty if nothing speaks against making it."""
    found = [Violation(name, *one) for name, rule in RULES.items() if (one := rule(making))]
    return found + list(_values(making))


def _values(m: Making) -> Iterator[Violation]:
    """A searched value that this recipe's tool has not, though another's has."""
    for field, value in m.asked.items():
        if not allows(m.fields, field, value):
            cause = f"{m.word}: {m.recipe.tool} does not take {field}={value}"
            allowed = listed(one for one in m.fields.get(field, ()) if one != "auto")
            remedy = f"use one of {allowed} with it" if allowed else f"leave {field} out with it"
            yield Violation("recipe_value", cause, remedy, m.involved(field))


def tool_needs_cuda(m: Making) -> Finding | None:
    """One toolchain has no code for processors."""
    made_by = tool(m.recipe.tool)
    has_none = m.device == "cpu" or (m.device == "auto" and m.machine != "cuda")
    if not made_by.needs_cuda or not has_none:
        return None
    why = "quantize.device=cpu keeps it from one" if m.machine == "cuda" else "there is none here"
    cause = f"{m.word}: {made_by.name} quantizes on an NVIDIA GPU only, and {why}"
    return cause, made_by.instead, ("quantization",)


def device_is_there(m: Making) -> Finding | None:
    """Nothing is made on a GPU where there is none."""
    if m.device != "cuda" or m.machine == "cuda":
        return None
    cause = f"{m.word}: quantize.device=cuda, and this machine has no NVIDIA GPU"
    return cause, "set quantize.device=cpu, or make it on another machine", ("quantization",)


def model_is_unquantized(m: Making) -> Finding | None:
    """A checkpoint is made from the weights as they were trained."""
    own = m.model.quantization_method if m.model is not None else None
    if own is None:
        return None
    cause = f"{m.word} is made from unquantized weights, and the model is quantized with {own}"
    return cause, "set model.path to the unquantized model", ("quantization",)


def shapes_pack(m: Making) -> Finding | None:
    """Quantized weights are packed into words, several to one."""
    made = format_of(m.recipe)
    for layer in quantized_layers(m.model):
        for what, width, multiple in _packed(layer, made.inputs_of, made.outputs_of):
            if width % multiple:
                cause = (
                    f"{m.word}: the {layer.name} layer's {width} {what} features are not a "
                    f"multiple of {multiple}, which {m.recipe.tool} packs together"
                )
                return cause, "use quantize=w8a8, which packs nothing", ("quantization",)
    return None


def _packed(layer: Linear, inputs_of: int, outputs_of: int) -> list[tuple[str, int, int]]:
    return [("input", layer.inputs, inputs_of), ("output", layer.outputs, outputs_of)]


RULES: dict[str, Callable[[Making], Finding | None]] = {
    "tool_needs_cuda": tool_needs_cuda,
    "device_is_there": device_is_there,
    "model_is_unquantized": model_is_unquantized,
    "shapes_pack": shapes_pack,
}
