"""Names of an engine's flags: one spelling, and none that a launch sets itself. Pure."""

from __future__ import annotations

from collections.abc import Collection

from sweeper.errors import ConfigError


def checked_name(name: str, owned: Collection[str]) -> str:
    """A flag's name with underscores and without dashes in front.

    Args:
        name: as the user wrote it.
        owned: flags that every launch sets itself.

    Raises:
        ConfigError: it is one of `owned`.
    """
    plain = name.lstrip("-").replace("-", "_")
    if plain in owned:
        raise ConfigError(
            f"the engine flag {plain!r} is set by every launch itself",
            "remove it from engine.args and the space; give the model with model.path",
        )
    return plain
