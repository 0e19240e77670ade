"""What uv is told: this machine's package sources as pip knows them, and nothing of the tuner's."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping

_PIP_PATIENCE_S = 60.0
_SETTINGS = ("find-links", "index-url", "extra-index-url", "no-index", "trusted-host", "cert")
# Of the tuner's environment, or such that the environment would be gone when uv ends.
_NOT_FOR_UV = frozenset(
    {"PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "VIRTUAL_ENV", "UV_NO_CACHE", "UV_PYTHON"}
)


def pip_settings() -> dict[str, str]:
    """Package sources by the names of pip's options, from its variables first, then its files."""
    settings = {}
    if importlib.util.find_spec("pip") is not None:
        settings.update(parse_pip_config(_pip_config()))
    for name in _SETTINGS:
        value = os.environ.get(f"PIP_{name.upper().replace('-', '_')}", "").strip()
        if value:
            settings[name] = value
    return settings


def parse_pip_config(listing: str) -> dict[str, str]:
    """The package sources in what ``pip config list`` prints (``global.index-url='...'``)."""
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.strip().partition(".")
        if section in found and name in _SETTINGS:
            try:
                found[section][name] = str(ast.literal_eval(value)).strip()
            except (ValueError, SyntaxError):  # another pip may write it without quotes
                found[section][name] = value.strip()
    # Installing is what uv does here, so that section has its say over the global one.
    return {**found["global"], **found["install"]}


def uv_environment(
    environment: Mapping[str, str], pip: Mapping[str, str], python: str
) -> dict[str, str]:
    """The environment to start uv in.

    Args:
        environment: the tuner's own. What it says to uv itself wins over pip's settings.
        pip: see `pip_settings`.
        python: interpreter that the environment is made with.
    """
    told = {key: value for key, value in environment.items() if key not in _NOT_FOR_UV}
    wishes = _as_uv_says(pip)
    if "UV_INDEX_URL" in told:  # older names that uv still knows
        wishes.pop("UV_DEFAULT_INDEX", None)
    if "UV_EXTRA_INDEX_URL" in told or "UV_INDEX" in told:
        wishes.pop("UV_INDEX", None)
        wishes.pop("UV_INDEX_STRATEGY", None)
    return {**wishes, **told, "UV_PYTHON": python, "NO_COLOR": "1"}


def _as_uv_says(pip: Mapping[str, str]) -> dict[str, str]:
    wishes = {
        # uv separates links by commas, pip by white space.
        "UV_FIND_LINKS": ",".join(pip.get("find-links", "").split()),
        "UV_DEFAULT_INDEX": pip.get("index-url", ""),
        "UV_INDEX": " ".join(pip.get("extra-index-url", "").split()),
        "UV_INSECURE_HOST": " ".join(pip.get("trusted-host", "").split()),
        "UV_NO_INDEX": "1" if pip.get("no-index", "").lower() in {"1", "true", "yes", "on"} else "",
        "SSL_CERT_FILE": pip.get("cert", ""),
    }
    # pip takes the best version of all indexes, uv by default only what the first one has.
    if wishes["UV_INDEX"]:
        wishes["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in wishes.items() if value}


def _pip_config() -> str:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            capture_output=True,
            text=True,
            timeout=_PIP_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
