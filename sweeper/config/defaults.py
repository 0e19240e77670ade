"""Which profile a study starts from when the user names none: it follows the hardware."""

from __future__ import annotations

from typing import Any

from sweeper.config.files import is_file_option, read_group_file
from sweeper.config.location import conf_dir
from sweeper.config.overrides import Override

PROFILE_OF_DEVICE = {"cpu": "cpu", "cuda": "gpu"}


def profile_for(overrides: list[Override], device_kind: str) -> str | None:
    """Profile to add, or None if the user chose one.

    Args:
        overrides: what the user gave.
        device_kind: ``cpu`` or ``cuda``, what this machine has; hardware that the overrides
            describe (``hardware=h100_80gb``) goes before it.
    """
    if any(override.group and override.key == "profile" for override in overrides):
        return None
    return PROFILE_OF_DEVICE.get(described_kind(overrides) or device_kind, "cpu")


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


def _kind_of_option(option: str) -> Any:
    if is_file_option(option):
        return read_group_file("hardware", option).get("kind")
    return read_group_file("hardware", str(conf_dir() / "hardware" / f"{option}.yaml")).get("kind")
