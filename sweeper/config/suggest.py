"""Did you mean …? One wording for all messages about names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.55) -> str | None:
    """The known name most like `word`, or None if none is alike."""
    names = list(known)
    exact = [name for name in names if name.lower() == word.lower()]
    found = exact or difflib.get_close_matches(word, names, n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str], *, what: str = "known") -> str:
    """A remedy that names the nearest known name; all of them if few, or if none is near."""
    names = sorted(known)
    close = nearest(word, names)
    listing = f"{what}: {', '.join(names)}"
    if close is None:
        return listing
    return f"did you mean {close}?" + (f" ({listing})" if len(names) <= 12 else "")
