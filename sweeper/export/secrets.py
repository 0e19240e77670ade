"""Secrets of a deployment: named, never written. Pure."""

from __future__ import annotations

import re

from sweeper.export.bundle import ExportInput
from sweeper.redaction import printable

_BY_FLAG = {"api_key": "VLLM_API_KEY", "hf_token": "HF_TOKEN"}
"""Flags whose value vLLM also takes from a variable."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables(source: ExportInput) -> dict[str, bool]:
    """Variables that must come from elsewhere → whether the deployment had them.

    A key for clients, and a token for the hub where the model is there, can always be given.
    """
    found = {"VLLM_API_KEY": False}
    if not source.model_path.startswith("/"):
        found["HF_TOKEN"] = False
    found |= dict.fromkeys(needed(source), True)
    return dict(sorted(found.items()))


def needed(source: ExportInput) -> list[str]:
    """Variables that the deployment had and that are secret."""
    hidden = {name for name in source.env if name not in source.public_env}
    named = {name for name in hidden if _VARIABLE.fullmatch(name)}
    return sorted(named | {_BY_FLAG[flag] for flag in _hidden_flags(source) if flag in _BY_FLAG})


def lost_flags(source: ExportInput) -> list[str]:
    """Secret flags for which there is no variable, as they are written: ``--name``."""
    lost = (flag for flag in _hidden_flags(source) if flag not in _BY_FLAG)
    return [printable("--" + flag.replace("_", "-")) for flag in lost]


def _hidden_flags(source: ExportInput) -> list[str]:
    given = {name.replace("-", "_") for name, value in source.flags.items() if value is not None}
    return sorted(given - source.public_flags.keys())
