"""Names and texts as MLflow accepts them. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

MAX_PARAM_LENGTH = 6000
# Of servers before 2.14; newer ones take 8000.
MAX_TAG_LENGTH = 5000
MAX_NAME_LENGTH = 250
_UNFIT = re.compile(r"[^A-Za-z0-9_\-.:/ ]+")
_UNFIT_FOR_MODELS = re.compile(r"[/:.%\"']+")
_LABELS = {"": "unnamed", ".": "dot", "..": "dots"}


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Each name → one that MLflow accepts; two names never become one."""
    result: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names), key=lambda name: (sanitise(name) != name, name)):
        safe = sanitise(name)
        if safe in taken:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            safe = f"{safe[: MAX_NAME_LENGTH - 9]}-{digest}"
        taken.add(safe)
        result[name] = safe
    return result


def sanitise(name: str) -> str:
    """A name of letters, digits, ``_ - . : /`` and spaces that is not a path out of its folder."""
    kept = _UNFIT.sub("_", name.replace("%", "pct")).strip()
    parts = [_LABELS.get(part, part) for part in kept.split("/")]
    return "/".join(parts)[:MAX_NAME_LENGTH]


def model_name(words: str) -> str:
    """A name that MLflow takes for a model: no slash, colon, dot, per cent sign or quote."""
    return _UNFIT_FOR_MODELS.sub("-", words)[:MAX_NAME_LENGTH].strip() or "unnamed"


def param_text(value: object) -> str:
    """A param's value: text as it is, anything else as JSON; cut at `MAX_PARAM_LENGTH`."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= MAX_PARAM_LENGTH else text[: MAX_PARAM_LENGTH - 1] + "…"
