"""The space in Optuna's coordinates. The one module of this room that knows Optuna.

A categorical parameter whose choices are numbers in order has a distance that a sampler can use: it
becomes the index into its choices, an integer. All other choices stay categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweeper.space.canonical import exists
from sweeper.space.match import match
from sweeper.space.model import CATEGORICAL, INT, Parameter, Raw, Scalar, Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial


def flat_distributions(space: Space) -> dict[str, BaseDistribution]:
    """Every parameter's distribution, conditions ignored: what a joint sampler needs."""
    return {parameter.name: distribution(parameter) for parameter in space.parameters}


def distribution(parameter: Parameter) -> BaseDistribution:
    """One parameter as Optuna sees it."""
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if parameter.kind == CATEGORICAL:
        if is_ordered(parameter):
            return IntDistribution(0, len(parameter.choices) - 1)
        return CategoricalDistribution(parameter.choices)
    low, high = _ends(parameter)
    if parameter.kind == INT:
        return IntDistribution(int(low), int(high), log=parameter.log, step=_int_step(parameter))
    return FloatDistribution(low, high, log=parameter.log, step=parameter.step)


def suggest(trial: Trial, space: Space, *, conditional: bool) -> Raw:
    """Ask a trial for raw values.

    Args:
        trial: an Optuna trial (or a frozen one with these parameters).
        space: the space.
        conditional: True asks only for parameters that exist given their parents; False asks for
            all (closed branches get a value that `canonical` drops).
    """
    raw: Raw = {}
    for parameter in space.parameters:
        if not conditional or exists(space, parameter, raw):
            raw[parameter.name] = _suggest_one(trial, parameter)
    return raw


def encode(space: Space, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Raw values → Optuna's coordinates, as `enqueue_trial` takes them. Fixed ones are dropped.

    Raises:
        ValueError: a value outside its parameter.
    """
    return {
        name: _encode_one(space[name], value) for name, value in raw.items() if name in space.names
    }


def decode(space: Space, params: Mapping[str, Any]) -> Raw:
    """Optuna's coordinates → raw values; the inverse of `encode`."""
    return {name: _decode_one(space[name], value) for name, value in params.items()}


def is_ordered(parameter: Parameter) -> bool:
    """True if all choices are numbers in rising or falling order (then the default is one too)."""
    numbers = [
        choice
        for choice in parameter.choices
        if isinstance(choice, (int, float)) and not isinstance(choice, bool)
    ]
    if len(numbers) != len(parameter.choices) or len(numbers) < 2:
        return False
    return numbers in (sorted(numbers), sorted(numbers, reverse=True))


def _suggest_one(trial: Trial, parameter: Parameter) -> Scalar:
    name = parameter.name
    if parameter.kind == CATEGORICAL:
        if is_ordered(parameter):
            index = trial.suggest_int(name, 0, len(parameter.choices) - 1)
            return parameter.choices[index]
        choice: Scalar = trial.suggest_categorical(name, parameter.choices)  # type: ignore[assignment]
        return choice
    low, high = _ends(parameter)
    if parameter.kind == INT:
        step = _int_step(parameter)
        return trial.suggest_int(name, int(low), int(high), step=step, log=parameter.log)
    return trial.suggest_float(name, low, high, step=parameter.step, log=parameter.log)


def _encode_one(parameter: Parameter, value: Any) -> Any:
    own = match(parameter, value)
    if own is None:
        raise ValueError(f"{parameter.name}={value!r} is not a value of the space")
    if is_ordered(parameter):
        return parameter.choices.index(own)
    return own


def _decode_one(parameter: Parameter, value: Any) -> Scalar:
    own: Scalar = parameter.choices[int(value)] if is_ordered(parameter) else value
    return own


def _ends(parameter: Parameter) -> tuple[float, float]:
    if parameter.low is None or parameter.high is None:
        raise ValueError(f"{parameter.name} is not a range")
    return parameter.low, parameter.high


def _int_step(parameter: Parameter) -> int:
    return int(parameter.step) if parameter.step is not None else 1
