"""Words of a search space. Frozen data, no IO."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Scalar = str | int | float | bool

ENGINE_DEFAULT = "default"
"""The choice that means: leave the parameter out."""

CATEGORICAL, INT, FLOAT = "categorical", "int", "float"


@dataclass(frozen=True)
class Parameter:
    """One dimension.

    Attributes:
        name: canonical name, or ``flag.<name>`` / ``env.<NAME>``.
        kind: ``categorical``, ``int`` or ``float``.
        choices: values of a categorical one, in the order given; empty for a range.
        low: lower end of a range, inclusive.
        high: upper end of a range, inclusive and on the grid of `step`.
        step: distance of the values of a range; None is 1 for ``int`` and continuous for ``float``.
        log: whether a range is searched on a logarithmic scale.
        default: coordinate of the engine's default (or of the branch's first value, if `required`).
        when: parent parameter → values under which this one exists; all must hold.
        required: True if the engine has no default of its own: never left out where it exists.
        own: value of `quantization` → the value that says there what the default says: a recipe's
            own, for a parameter that changes a recipe.
    """

    name: str
    kind: str
    choices: tuple[Scalar, ...] = ()
    low: float | int | None = None
    high: float | int | None = None
    step: float | int | None = None
    log: bool = False
    default: Scalar = ENGINE_DEFAULT
    when: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    required: bool = False
    own: dict[Scalar, Scalar] = field(default_factory=dict)

    @property
    def values(self) -> tuple[Scalar, ...] | None:
        """All values in order, or None if there is a continuum of them."""
        if self.kind == CATEGORICAL:
            return self.choices
        if self.low is None or self.high is None or (self.kind == FLOAT and self.step is None):
            return None
        step = self.step if self.step is not None else 1
        count = round((self.high - self.low) / step) + 1
        return tuple(_grid(self, self.low + index * step) for index in range(count))

    def is_default(self, value: Scalar) -> bool:
        """True if `value` says the same as leaving the parameter out."""
        return not self.required and value == self.default

    def is_own(self, value: Scalar, quantization: Scalar | None) -> bool:
        """True if a recipe, the value of `quantization`, says the same by itself."""
        own = None if quantization is None else self.own.get(quantization)
        return own is not None and type(own) is type(value) and own == value


def _grid(parameter: Parameter, value: float) -> Scalar:
    return round(value) if parameter.kind == INT else round(value, 12)


@dataclass(frozen=True)
class Space:
    """What is searched.

    Attributes:
        name: for messages and the study's name.
        parameters: the dimensions; parents stand before the parameters that depend on them.
        fixed: parameters with one value in every deployment (the engine's defaults left out).
        seeds: deployments to try first, partial: what is not named is at its default.
        listed: the only deployments that exist, canonical; None where every combination does.
    """

    name: str
    parameters: tuple[Parameter, ...]
    fixed: dict[str, Scalar] = field(default_factory=dict)
    seeds: tuple[dict[str, Scalar], ...] = ()
    listed: tuple[dict[str, Scalar], ...] | None = field(default=None, repr=False)

    def __getitem__(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dimensions, in order."""
        return tuple(parameter.name for parameter in self.parameters)


Raw = dict[str, Any]
"""Coordinates as a sampler or a seed names them: parameter → value, partial or full."""
