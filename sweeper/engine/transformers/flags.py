"""A deployment's canonical parameters as this engine's flags and environment. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sweeper.engine.flag_check import (
    BOOLEAN,
    VALUE,
    AskedFlag,
    Flag,
    FlagCheck,
    KnownFlags,
    Problem,
    Refusal,
    dashed,
    find_problem,
)
from sweeper.engine.flag_names import checked_name
from sweeper.engine.transformers.deployment import Deployment, RefusedError, check_values

FLAG_PREFIX = "flag."
ENV_PREFIX = "env."

LEFT_OUT = {
    "quantization": {"none", "compressed-tensors"},
    "kv_cache_dtype": {"auto"},
    "dtype": {"auto"},
}
"""Words by which a parameter says that it wants the engine's default. How a checkpoint of
compressed-tensors is packed stands in its own config.json; the library unpacks it as it reads."""

OWNED = frozenset({"model", "served_name", "host", "port", "api_key", "settings"})
"""What a launch sets itself; a configuration must not."""


def deployment_flags(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Flags by underscored name, and environment; what says the engine's default is left out.

    Raises:
        ConfigError: a flag that belongs to the launch.
    """
    flags: dict[str, Any] = {}
    env: dict[str, str] = {}
    for name, value in parameters.items():
        if value is None or value == "default" or value in LEFT_OUT.get(name, ()):
            continue
        if name.startswith(ENV_PREFIX):
            text = str(int(value)) if isinstance(value, bool) else str(value)
            env[name.removeprefix(ENV_PREFIX)] = text
        else:
            flags[_flag_name(name.removeprefix(FLAG_PREFIX))] = value
    return flags, env


def engine_flags(args: Mapping[str, Any]) -> dict[str, Any]:
    """`engine.args` of the configuration as flags. Raises ConfigError for the launch's own."""
    return {_flag_name(name): value for name, value in args.items() if value is not None}


def check(asked: Sequence[AskedFlag]) -> FlagCheck:
    """Flags that this engine's server does not have, and values that they never take."""
    found = ((one, _problem(one)) for one in asked)
    return FlagCheck(tuple(Refusal(one, problem) for one, problem in found if problem is not None))


def _problem(asked: AskedFlag) -> Problem | None:
    if asked.name in OWNED:
        cause = f"--{dashed(asked.name)} is set by every launch itself"
        return Problem(cause, "leave it out; the model is given by model.path", unknown=True)
    if asked.value in LEFT_OUT.get(asked.name, ()):
        return None
    problem = find_problem(asked.name, asked.value, KNOWN)
    if problem is not None:
        return problem
    try:
        check_values(Deployment(**{asked.name: asked.value}))
    except RefusedError as refused:
        cause, _, remedy = str(refused).partition("; ")
        return Problem(cause, remedy or "take another value, or leave it out")
    return None


def _known() -> KnownFlags:
    flags = (
        Flag(field.name, kind=BOOLEAN if "bool" in str(field.type) else VALUE)
        for field in fields(Deployment)
    )
    return KnownFlags("the transformers engine", tuple(flags), command_line=False)


KNOWN = _known()
"""Flags of this engine's own server, the same for every version of the library."""


def _flag_name(name: str) -> str:
    return checked_name(name, OWNED)
