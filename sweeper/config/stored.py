"""`study.yaml`: the resolved configuration and the identity a study was started with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeper.config.checks import check
from sweeper.config.names import check_names, leaves
from sweeper.config.overrides import read_overrides
from sweeper.config.schema import SweeperConfig
from sweeper.config.secrets import check_secrets, completed_uri, hide, remember_secrets
from sweeper.config.yaml_text import read_yaml
from sweeper.errors import ConfigError


@dataclass(frozen=True)
class StoredStudy:
    """Content of `study.yaml`."""

    config: dict[str, Any]
    identity: dict[str, Any]


def study_text(cfg: SweeperConfig, identity: dict[str, Any]) -> str:
    """Render `study.yaml`. The password in the address of MLflow is left out."""
    from dataclasses import asdict

    import yaml

    return yaml.safe_dump(
        {"identity": identity, "config": hide(asdict(cfg))}, sort_keys=False, allow_unicode=True
    )


def read_study(path: Path) -> StoredStudy:
    """Read `study.yaml`.

    Raises:
        ConfigError: it cannot be read, or is not what this version writes.
    """
    remedy = "restore it from a backup, or start a new study with study=NEW_NAME"
    data = read_yaml(path, str(path), remedy)
    try:
        stored = StoredStudy(dict(data["config"]), dict(data["identity"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path} cannot be read: {type(error).__name__}: {error}", remedy
        ) from error
    # A study is given from hand to hand. What it stored are values: an expression in its file was
    # put there by somebody, and would be filled from the environment of whoever only looks.
    if expression := next((key for key, text in leaves(stored.config) if "${" in text), None):
        raise ConfigError(f"{path}: config.{expression} holds an expression, '${{...}}'", remedy)
    return stored


def restore(stored: StoredStudy, overrides: Sequence[str] = ()) -> SweeperConfig:
    """Rebuild the configuration of a stored study, with `key=value` overrides on top.

    Raises:
        ConfigError: an override names no setting or has the wrong type, or the stored
            configuration comes from a version with other settings.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for override in read_overrides(list(overrides)):
        if override.group:
            raise ConfigError(
                f"{override.text}: a stored study's groups cannot be swapped",
                f"set single keys ({override.key}.KEY=VALUE), or start a study with study=NEW_NAME",
            )
    wrong = (OmegaConfBaseException, ValueError, TypeError)
    try:
        base = OmegaConf.merge(
            OmegaConf.structured(SweeperConfig), OmegaConf.create(as_now(stored.config))
        )
    except wrong as error:
        raise ConfigError(
            "the study was stored by a version of sweeper with other settings: "
            f"{_first_line(error)}",
            "use the sweeper that wrote it, or start another study with study=NEW_NAME",
        ) from error
    try:
        cfg = OmegaConf.to_object(OmegaConf.merge(base, OmegaConf.from_dotlist(list(overrides))))
    except wrong as error:
        raise ConfigError(
            f"an override does not fit this study: {_first_line(error)}",
            "settings are written key=value; `python -m sweeper --cfg` lists them all",
        ) from error
    if not isinstance(cfg, SweeperConfig):
        raise ConfigError("study.yaml holds no configuration", "start a new study")
    cfg.tracking.uri = completed_uri(cfg.tracking.uri, os.environ)
    remember_secrets(cfg)
    if overrides:
        check_names(cfg)
        check_secrets(cfg, stored.config)
    check(cfg)
    return cfg


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def as_now(config: dict[str, Any]) -> dict[str, Any]:
    """A stored configuration in the words of this version, with the same meaning.

    Earlier versions, which knew fewer limits, wrote `select.prefer=throughput` where nobody had
    said anything, and took the knee of the front without an SLO: what is called ``auto`` now.
    """
    select = config.get("select")
    if not isinstance(select, dict) or select.get("prefer") != "throughput":
        return config
    if "ttft_p99_ms" in (select.get("slo") or {}):
        return config
    return {**config, "select": {**select, "prefer": "auto"}}
