"""Which profile a study starts from when the user names none: it follows engine and hardware."""

from __future__ import annotations

from typing import Any

from sweeper.config.files import is_file_option, read_group_file
from sweeper.config.location import conf_dir, options
from sweeper.config.overrides import Override

PROFILE_OF_DEVICE = {"cpu": "cpu", "cuda": "gpu"}


def profile_for(overrides: list[Override], device_kind: str) -> str | None:
    """Profile to add, or None if the user chose one.

    Args:
        overrides: what the user gave.
        device_kind: ``cpu`` or ``cuda``, what this machine has; hardware that the overrides
            describe (``hardware=h100_80gb``) goes before it. An engine with needs of its own has
            profiles of its own: ``{engine}_{profile}``, or ``{engine}`` on any hardware.
    """
    if any(override.group and override.key == "profile" for override in overrides):
        return None
    device = PROFILE_OF_DEVICE.get(described_kind(overrides) or device_kind, "cpu")
    engine = _engine_name(overrides)
    known = options("profile")
    return next(name for name in (f"{engine}_{device}", engine, device) if name in known)


def described_kind(overrides: list[Override]) -> str | None:
    """``cpu`` or ``cuda`` if the overrides describe hardware, None if it is this machine's."""
    kind: Any = None
    for override in overrides:
        if override.group and override.key == "hardware":
            kind = _kind_of_option(override.value)
    for override in overrides:
        if override.key == "hardware.kind":
            kind = override.value
    return str(kind) if kind in PROFILE_OF_DEVICE else None


def _engine_name(overrides: list[Override]) -> str:
    """The engine that the overrides name; empty if they leave the default."""
    name: Any = ""
    for override in overrides:
        if override.group and override.key == "engine":
            name = _option("engine", override.value).get("name")
    for override in overrides:
        if override.key == "engine.name":
            name = override.value
    return str(name)


def _kind_of_option(option: str) -> Any:
    return _option("hardware", option).get("kind")


def _option(group: str, option: str) -> dict[str, Any]:
    """Content of a group's option: the user's own file, or one that is shipped."""
    if is_file_option(option):
        return read_group_file(group, option)
    return read_group_file(group, str(conf_dir() / group / f"{option}.yaml"))
