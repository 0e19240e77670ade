"""What was asked of an engine beside what is in effect. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def not_taken(asked: Mapping[str, Any], effective: Mapping[str, Any]) -> dict[str, str]:
    """Flags whose effective value is another than the one asked for.

    A flag that no source tells is not in the answer: nothing is known of it.
    """
    return {
        name: f"asked {value}, in effect {effective[name]}"
        for name, value in asked.items()
        if name in effective and not _same(value, effective[name])
    }


def _same(asked: Any, effective: Any) -> bool:
    if isinstance(asked, bool) or isinstance(effective, bool):
        return str(asked).lower() == str(effective).lower()
    if isinstance(asked, int | float) and isinstance(effective, int | float):
        return abs(float(asked) - float(effective)) < 1e-9
    if isinstance(asked, Mapping) and isinstance(effective, Mapping):
        return all(name in effective and _same(v, effective[name]) for name, v in asked.items())
    return str(asked) == str(effective)
