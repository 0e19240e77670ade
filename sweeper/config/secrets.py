"""Secrets in a configuration: refused where they would be written down, hidden where they may be.

A study's configuration is recorded, compared and shared, and a server's flags stand in the list of
processes. A secret therefore has no place in either: it comes by the environment, which every
server inherits. The one exception is the password of an MLflow server in ``tracking.uri``: it is
used, and written down as ``(hidden)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from sweeper.config.names import leaves
from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError
from sweeper.redaction import HIDDEN, carries_secret, redact, remember

URI_KEY = "tracking.uri"
URI_VARIABLE = "MLFLOW_TRACKING_URI"
USER_VARIABLE, PASSWORD_VARIABLE = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"
TOKEN_VARIABLE = "MLFLOW_TRACKING_TOKEN"
HOW_TO_GIVE = (
    f"set {URI_VARIABLE} to the whole address, or (http, https) {USER_VARIABLE} and "
    f"{PASSWORD_VARIABLE}, or give {URI_KEY}=... again"
)

_NAMED = ("engine.args.", "engine.env.", "engine.options.", "space.")
"""Below these a key is the name of a flag or a variable, which tells whether it is a secret."""


def check_secrets(cfg: SweeperConfig, known: Mapping[str, Any] | None = None) -> None:
    """Refuse a secret in the configuration.

    Args:
        cfg: the configuration.
        known: one that was stored earlier, as plain data; what it has already is not judged again.

    Raises:
        ConfigError: names the key and the variable to use instead, never the value.
    """
    before = set(leaves(known or {}))
    for key, value in leaves(asdict(cfg)):
        if key == URI_KEY or (key, value) in before:
            continue
        name = _name(key)
        if key.startswith(_NAMED) and carries_secret(name, value):
            raise ConfigError(
                f"{key} is a secret by its name, and a study's settings are written down, compared "
                "and shown",
                f"{_instead(name)}; if it is none, set it in the environment all the same",
            )
        if redact(value) != value:
            raise ConfigError(
                f"{key} holds a key, a token or a password, and a study's settings are written "
                "down, compared and shown",
                _instead(name),
            )


def remember_secrets(cfg: SweeperConfig) -> None:
    """Make the secrets of a configuration known to `sweeper.redaction`."""
    remember(_password(cfg.tracking.uri or ""))
    for key, value in leaves(asdict(cfg)):
        if key.startswith(_NAMED) and carries_secret(_name(key), value):
            remember(value)


def hide(plain: dict[str, Any]) -> dict[str, Any]:
    """The configuration as plain data, without the password in the address of MLflow."""
    tracking = plain["tracking"]
    uri = tracking["uri"]
    return {**plain, "tracking": {**tracking, "uri": None if uri is None else redact(uri)}}


def completed_uri(uri: str | None, environment: Mapping[str, str]) -> str | None:
    """A stored address of MLflow with what was hidden in it, as far as the environment has it.

    A password only goes to the server it was given for: the variable's address must be the stored
    one but for its secrets.

    Args:
        uri: as stored, None for none.
        environment: of this process.

    Returns:
        A whole address; the stored one, still with its ``(hidden)``, if the environment lacks it.
    """
    if uri is None or HIDDEN not in uri:
        return uri
    named = environment.get(URI_VARIABLE, "").strip()
    if named and redact(named) == uri:
        return named
    split = urlsplit(uri)
    has_login = environment.get(USER_VARIABLE) and environment.get(PASSWORD_VARIABLE)
    if split.scheme in {"http", "https"} and (has_login or environment.get(TOKEN_VARIABLE)):
        bare = urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2]))
        return uri if HIDDEN in bare else bare
    return uri


def _name(key: str) -> str:
    """The flag or variable that a key is about: what stands behind its group, forms left out.

    ``space.parameters.env.HF_TOKEN.choices`` is about ``env.HF_TOKEN``; of what lies deeper in a
    flag (``engine.args.hf_overrides.auth.token``) the last part counts too, hence the whole rest.
    """
    group = next((one for one in _NAMED if key.startswith(one)), "")
    rest = key.removeprefix(group)
    for place in ("parameters.", "fixed.", "seeds."):
        rest = rest.removeprefix(place)
    return rest.removesuffix(".choices").removesuffix(".default").removeprefix("flag.")


def _instead(name: str) -> str:
    variable = name.removeprefix("env.").rpartition(".")[2].upper().replace("-", "_")
    plain = variable if variable.isidentifier() else "NAME"
    return (
        f"put it into the environment, which every server inherits: "
        f"`export {plain}=...`, then run the same command without it"
    )


def _password(uri: str) -> str | None:
    try:
        return urlsplit(uri).password
    except ValueError:
        return None
