"""A deployment's canonical parameters as this engine's flags and environment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.engine.flag_names import checked_name

FLAG_PREFIX = "flag."
ENV_PREFIX = "env."

LEFT_OUT = {"quantization": {"none"}, "kv_cache_dtype": {"auto"}, "dtype": {"auto"}}
"""Words by which a parameter says that it wants the engine's default."""

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


def _flag_name(name: str) -> str:
    return checked_name(name, OWNED)
