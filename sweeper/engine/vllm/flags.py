"""A deployment as vLLM's flags and environment. Pure.

Flags are kept as a mapping from underscored name to value, because the same mapping becomes a
command line here and a configuration file in `export`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sweeper.engine.flag_names import checked_name
from sweeper.errors import ConfigError

FLAG_PREFIX = "flag."
ENV_PREFIX = "env."

SAME_AS_LEFT_OUT = {
    "quantization": {"none"},
    "dtype": {"auto"},
    "kv_cache_dtype": {"auto"},
    "speculative": {"none"},
}
"""Words by which a parameter says that it wants the engine's default."""

SPECULATIVE_PARTS = frozenset(
    {"speculative", "num_speculative_tokens", "speculative_model"}
    | {"prompt_lookup_max", "prompt_lookup_min"}
)
"""Parameters that together become one flag, `speculative_config`."""

OWNED = frozenset(
    {"model", "model_tag", "served_model_name", "host", "port", "uds", "api_key", "config"}
)
"""Flags that a launch sets itself; a configuration must not."""


def deployment_flags(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Flags and environment of a deployment; what equals the engine's default is left out.

    Args:
        parameters: flat deployment, see the parameter names in the guide.

    Raises:
        ConfigError: a flag that belongs to the launch, or a speculative model that is missing.
    """
    flags: dict[str, Any] = {}
    env: dict[str, str] = {}
    for name, value in parameters.items():
        if name in SPECULATIVE_PARTS or is_left_out(name, value):
            continue
        if name.startswith(ENV_PREFIX):
            env[name.removeprefix(ENV_PREFIX)] = _env_text(value)
        else:
            flags[flag_name(name.removeprefix(FLAG_PREFIX))] = value
    speculative = speculative_config(parameters)
    if speculative is not None:
        flags["speculative_config"] = speculative
    return flags, env


def is_left_out(name: str, value: Any) -> bool:
    """True if a value says no more than leaving the parameter out."""
    return value is None or value == "default" or value in SAME_AS_LEFT_OUT.get(name, ())


def flag_name(name: str) -> str:
    """A flag's name with underscores and without dashes in front; refuses the launch's own."""
    return checked_name(name, OWNED)


def engine_flags(args: Mapping[str, Any]) -> dict[str, Any]:
    """`engine.args` of the configuration as flags. Raises ConfigError for the launch's own."""
    return {flag_name(name): value for name, value in args.items() if value is not None}


def speculative_config(parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """vLLM's `speculative_config` for a deployment, None without speculative decoding."""
    method = parameters.get("speculative", "none")
    if is_left_out("speculative", method):
        return None
    tokens = parameters.get("num_speculative_tokens")
    if method == "ngram":
        config: dict[str, Any] = {"method": "ngram", "num_speculative_tokens": tokens}
        for name in ("prompt_lookup_max", "prompt_lookup_min"):
            config[name] = parameters.get(name)
    else:
        model = parameters.get("speculative_model")
        if not model:
            raise ConfigError(
                f"speculative={method} needs a model of its own",
                "set model.draft_model (draft_model) or model.eagle_model (eagle), or leave "
                f"{method} out of the space",
            )
        config = {
            "method": _method(str(method), str(model)),
            "model": model,
            "num_speculative_tokens": tokens,
        }
    return {name: value for name, value in config.items() if value is not None}


def further_models(flags: Mapping[str, Any]) -> list[str]:
    """Paths or hub ids that a launch reads besides its model: draft model, tokenizer, config."""
    speculative = flags.get("speculative_config")
    named = [flags.get("tokenizer"), flags.get("hf_config_path")]
    if isinstance(speculative, Mapping):
        named += [speculative.get("model"), speculative.get("tokenizer")]
    return [str(name) for name in named if name]


def to_argv(flags: Mapping[str, Any]) -> list[str]:
    """Flags as a command line: `--no-x` for False, JSON for mappings, one word a list item."""
    argv: list[str] = []
    for name, value in flags.items():
        option = "--" + name.replace("_", "-")
        if value is None:
            continue
        if value is True:
            argv.append(option)
        elif value is False:
            argv.append("--no-" + name.replace("_", "-"))
        elif isinstance(value, Mapping):
            argv += [option, json.dumps(dict(value), separators=(",", ":"))]
        elif isinstance(value, list | tuple):
            argv += [option, *(str(item) for item in value)]
        elif str(value).startswith("-"):
            argv.append(f"{option}={value}")
        else:
            argv += [option, str(value)]
    return argv


def _method(method: str, model: str) -> str:
    """EAGLE heads come in generations that vLLM tells apart by the method's name."""
    if method == "eagle" and "eagle3" in model.lower().replace("-", "").replace("_", ""):
        return "eagle3"
    return method


def _env_text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)
