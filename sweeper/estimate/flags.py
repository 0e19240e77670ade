"""Parameters that may stand in a deployment under their own name or as a free flag."""

from __future__ import annotations

from typing import Any

from sweeper.estimate.facts import Context

_PREFIX = "flag."


def given(context: Context, name: str) -> Any:
    """A flag's value, whichever way it is written; None if it is not given."""
    for spelling in (name, _PREFIX + name):
        if spelling in context.parameters:
            return context.parameters[spelling]
    return None


def given_number(context: Context, name: str) -> int | None:
    """A positive whole number; None for a word or nothing."""
    value = given(context, name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and value >= 1 else None


def any_given(context: Context, *parts: str) -> bool:
    """Whether a flag with one of these in its name is set."""
    return any(part in name for name in context.parameters for part in parts)
