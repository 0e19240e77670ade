"""Overrides → a typed configuration, through Hydra's compose API."""

from __future__ import annotations

from typing import Any

from sweeper.config.adjust import adjust
from sweeper.config.checks import check
from sweeper.config.defaults import profile_for
from sweeper.config.files import is_file_option, read_group_file, read_recipe_file
from sweeper.config.location import conf_dir
from sweeper.config.names import check_names
from sweeper.config.overrides import Override, read_overrides
from sweeper.config.quality_checks import check_quality_files
from sweeper.config.schema import SweeperConfig
from sweeper.config.secrets import check_secrets, remember_secrets
from sweeper.config.trust import check_trust
from sweeper.errors import ConfigError


def compose(
    overrides: list[str], *, validate: bool = True, device_kind: str = "cpu"
) -> SweeperConfig:
    """Compose the configuration of a study.

    Args:
        overrides: ``key=value`` as typed; a group takes an option's name or a YAML file.
        validate: also run the cross-field checks.
        device_kind: ``cpu`` or ``cuda``, what this machine has. Chooses the profile (space,
            workload, load, quality, budget) unless the overrides name one or describe hardware.

    Raises:
        ConfigError: a wrong key, type, option or value; names it, the nearest and the remedy.
    """
    read = read_overrides(overrides)
    cfg = _to_object(_compose(_texts(read, device_kind)))
    adjust(cfg, read)
    remember_secrets(cfg)
    if validate:
        check_names(cfg)
        check_trust(cfg)
        check_secrets(cfg)
        check(cfg)
        check_quality_files(cfg)
    return cfg


def _texts(read: list[Override], device_kind: str) -> list[str]:
    """What Hydra is given: file options are registered under a name of their own first."""
    texts = [_register(item) if item.group else item.text for item in read]
    texts = [text for text in texts if text]
    profile = profile_for(read, device_kind)
    if profile is not None:
        texts.append(f"profile={profile}")
    if _names_a_model_by_path_only(read):
        texts.append("model=custom")
    return texts


def _names_a_model_by_path_only(read: list[Override]) -> bool:
    """`model.path=X` alone is another model: the default's facts must not stick to it."""
    given = {item.key for item in read}
    return "model.path" in given and "model" not in given


def _register(item: Override) -> str:
    """Option text of a group; a user's file becomes a node in Hydra's store."""
    if isinstance(item.value, list):
        return f"{item.key}=[{','.join(_listed(item.key, option) for option in item.value)}]"
    if not is_file_option(item.value):
        return item.text
    from hydra.core.config_store import ConfigStore

    content = read_group_file(item.key, item.value)
    ConfigStore.instance().store(group=item.key, name="from_file", node=content)
    return f"{item.key}=from_file"


def _listed(group: str, option: str) -> str:
    """One option of a listed group; a user's file becomes the recipe that has its name."""
    if not is_file_option(option):
        return option
    from hydra.core.config_store import ConfigStore

    name, content = read_recipe_file(group, option)
    package = f"{group}.recipes.{name}"
    ConfigStore.instance().store(group=group, name=f"file_{name}", node=content, package=package)
    return f"file_{name}"


def _compose(texts: list[str]) -> Any:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.config_store import ConfigStore
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    ConfigStore.instance().store(name="schema", node=SweeperConfig)
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return hydra_compose("config", overrides=texts)
    except (HydraException, OmegaConfBaseException) as error:
        raise _explain(error) from error


def _to_object(composed: Any) -> SweeperConfig:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        cfg = OmegaConf.to_object(composed)
    except OmegaConfBaseException as error:
        raise _explain(error) from error
    if not isinstance(cfg, SweeperConfig):
        raise TypeError(f"composition gave {type(cfg).__name__}")
    return cfg


def _explain(error: Exception) -> ConfigError:
    """What no earlier check foresaw: the innermost message, its first line."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    line = (str(inner).strip() or type(inner).__name__).splitlines()[0]
    key = getattr(inner, "full_key", None)
    return ConfigError(
        f"the configuration cannot be composed: {f'{key}: ' if key else ''}{line}",
        "check the override or file that sets this key",
    )
