"""The configuration as YAML, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError


def to_plain(cfg: SweeperConfig) -> dict[str, Any]:
    """The configuration as plain mappings, lists and scalars."""
    return asdict(cfg)


def to_yaml(cfg: SweeperConfig) -> str:
    """The resolved configuration as YAML, in the schema's order."""
    import yaml

    return yaml.safe_dump(to_plain(cfg), sort_keys=False, allow_unicode=True)


def from_plain(data: dict[str, Any]) -> SweeperConfig:
    """The configuration that `to_plain` wrote. Raises ConfigError if it does not fit the schema."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        merged = OmegaConf.merge(OmegaConf.structured(SweeperConfig), data)
        cfg = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        line = str(error).splitlines()[0]
        raise ConfigError(
            f"the stored configuration does not fit: {line}",
            "it was written by another version or edited by hand; start a new study=NAME",
        ) from error
    if not isinstance(cfg, SweeperConfig):
        raise TypeError(f"reading gave {type(cfg).__name__}")
    return cfg
