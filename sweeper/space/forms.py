"""One entry of `space.parameters` → Parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError
from sweeper.space.catalogue import NEUTRAL, REQUIRED, is_neutral
from sweeper.space.model import CATEGORICAL, ENGINE_DEFAULT, FLOAT, INT, Parameter, Scalar

CHOICE_KEYS = ("choices", "default", "when", "required")
RANGE_KEYS = ("low", "high", "step", "log", "default", "type", "when")
DEFAULT_WORDS = (ENGINE_DEFAULT, "none", "auto")


def fault(where: str, problem: str, remedy: str) -> ConfigError:
    """A ConfigError about one entry of the space."""
    return ConfigError(f"{where}: {problem}", remedy)


def parse_form(name: str, form: Any) -> Parameter:
    """Read ``{choices: [...]}``, ``{low:, high:, default:}`` or a plain list of choices.

    Raises:
        ConfigError: an empty, contradictory or unknown form.
    """
    where = f"space.parameters.{name}"
    if isinstance(form, (list, tuple)):
        form = {"choices": list(form)}
    if not isinstance(form, Mapping):
        raise fault(
            where,
            f"{form!r} is neither a list of choices nor a range",
            f"to fix one value: space.fixed.{name}={form}; to search: {where}=[a,b]",
        )
    if "choices" in form:
        _check_keys(where, form, CHOICE_KEYS)
        return _categorical(where, name, form)
    _check_keys(where, form, RANGE_KEYS)
    return _range(where, name, form)


def _check_keys(where: str, form: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in form:
        if key not in known:
            remedy = did_you_mean(str(key), known, what="keys")
            raise fault(where, f"unknown key {key}", remedy)


def _categorical(where: str, name: str, form: Mapping[str, Any]) -> Parameter:
    given = form["choices"]
    if not isinstance(given, (list, tuple)) or not given:
        problem = "choices is empty" if given in ([], None) else "choices is not a list"
        raise fault(where, problem, f"list at least one value: {where}.choices=[a,b]")
    choices = [_scalar(where, ENGINE_DEFAULT if value is None else value) for value in given]
    _refuse_duplicates(where, choices)
    required = bool(form.get("required", name in REQUIRED))
    if required:
        return _required(where, name, choices, form)
    default = _categorical_default(name, choices, form)
    if default not in choices:
        choices.insert(0, default)
    _refuse_second_default(where, name, choices, default)
    return Parameter(name, CATEGORICAL, tuple(choices), default=default, when=_when(where, form))


def _categorical_default(name: str, choices: list[Scalar], form: Mapping[str, Any]) -> Scalar:
    if form.get("default") is not None:
        return _scalar(f"space.parameters.{name}", form["default"])
    words = [word for word in DEFAULT_WORDS if not (name == "max_model_len" and word == "auto")]
    return next((word for word in words if word in choices), ENGINE_DEFAULT)


def _required(where: str, name: str, choices: list[Scalar], form: Mapping[str, Any]) -> Parameter:
    """The engine has no default here: the first choice is only where a search begins."""
    words = [choice for choice in choices if is_neutral(name, choice)]
    if words:
        raise fault(
            where, f"{words[0]} means nothing here: the engine has no default", "take it out"
        )
    start = form.get("default", choices[0])
    if start not in choices:
        raise fault(where, f"default {start} is not among the choices", "add it to choices")
    return Parameter(
        name, CATEGORICAL, tuple(choices), default=start, when=_when(where, form), required=True
    )


def _refuse_duplicates(where: str, choices: list[Scalar]) -> None:
    for index, choice in enumerate(choices):
        if choice in choices[:index]:  # also true beside 1, which Optuna cannot tell apart
            raise fault(where, f"{choice} stands twice in choices", "keep it once")


def _refuse_second_default(where: str, name: str, choices: list[Scalar], default: Scalar) -> None:
    """Two choices that both mean the engine's default would be measured twice."""
    for choice in choices:
        if choice != default and (is_neutral(name, choice) or choice == ENGINE_DEFAULT):
            raise fault(
                where,
                f"{default} and {choice} both mean the engine's default",
                f"keep one of them{_hint(name)}",
            )


def _hint(name: str) -> str:
    words = NEUTRAL.get(name)
    return f" (for {name} also {', '.join(words)} means it)" if words else ""


def _range(where: str, name: str, form: Mapping[str, Any]) -> Parameter:
    for key in ("low", "high"):
        if key not in form:
            raise fault(
                where,
                f"needs choices, or low and high ({key} is missing)",
                f"for example {where}=[a,b] or '{where}={{low:1,high:8,default:4}}'",
            )
    low, high = (_number(where, key, form[key]) for key in ("low", "high"))
    if low > high:
        raise fault(where, f"low {low} is above high {high}", "swap them")
    step = None if form.get("step") is None else _number(where, "step", form["step"])
    kind = _range_kind(where, form, low, high, step)
    step = _checked_step(where, form, kind, low, step)
    parameter = Parameter(
        name,
        kind,
        low=low,
        high=_last_on_grid(low, high, step),
        step=step,
        log=bool(form.get("log", False)),
        when=_when(where, form),
    )
    return _with_default(where, parameter, form)


def _range_kind(where: str, form: Mapping[str, Any], *numbers: float | int | None) -> str:
    whole = all(isinstance(number, int) for number in numbers if number is not None)
    kind = form.get("type", INT if whole else FLOAT)
    if kind not in (INT, FLOAT):
        raise fault(where, f"type {kind} is not known", "use type: int or type: float")
    if kind == INT and not whole:
        raise fault(where, "type int with a fractional low, high or step", "use whole numbers")
    return str(kind)


def _checked_step(
    where: str, form: Mapping[str, Any], kind: str, low: float, step: float | None
) -> float | None:
    if step is not None and step <= 0:
        raise fault(where, f"step {step} is not above 0", "give a positive step, or none")
    if not form.get("log"):
        return step
    if low <= 0:
        raise fault(where, "a logarithmic range must begin above 0", "raise low, or drop log")
    if step is not None and not (kind == INT and step == 1):
        raise fault(where, "log and step exclude each other", "drop one, or list choices")
    return None


def _last_on_grid(low: float, high: float, step: float | None) -> float:
    if step is None:
        return high
    steps = math.floor((high - low) / step + 1e-9)
    last = low + steps * step
    return last if isinstance(last, int) else round(last, 12)


def _with_default(where: str, parameter: Parameter, form: Mapping[str, Any]) -> Parameter:
    given = form.get("default")
    remedy = f"name the engine's default as a number of the range: {where}.default=..."
    if given is None:
        raise fault(where, "a range needs default", remedy)
    default = _number(where, "default", given)
    values = parameter.values
    if values is None:
        low, high = parameter.low, parameter.high
        inside = low is not None and high is not None and low <= default <= high
    else:
        inside = any(abs(default - float(value)) < 1e-9 for value in values)
    if not inside:
        raise fault(where, f"default {default} is not a value of the range", remedy)
    exact = int(default) if parameter.kind == INT else float(default)
    return Parameter(**{**parameter.__dict__, "default": exact})


def _number(where: str, key: str, value: Any) -> float | int:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise fault(where, f"{key}: {value!r} is not a number", f"give a number: {where}.{key}=...")
    return value  # type: ignore[no-any-return]


def _scalar(where: str, value: Any) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        raise fault(where, f"{value} is not finite", "take it out")
    if isinstance(value, (str, bool, int, float)):
        return value
    raise fault(
        where, f"the choice {value!r} is not a single value", "use text, numbers or booleans"
    )


def _when(where: str, form: Mapping[str, Any]) -> dict[str, tuple[Scalar, ...]]:
    given = form.get("when") or {}
    if not isinstance(given, Mapping):
        raise fault(where, "when is not a mapping", "write when: {other_parameter: [values]}")
    conditions = {}
    for parent, values in given.items():
        listed = values if isinstance(values, (list, tuple)) else [values]
        if not listed:
            raise fault(where, f"when {parent} has no values", "list at least one, or drop it")
        conditions[str(parent)] = tuple(_scalar(where, value) for value in listed)
    return conditions
