"""What passes between the tuner and its server beside completions. Pure.

The log has one marked line of JSON for each thing told.
"""

from __future__ import annotations

import json
from typing import Any

MARK = "sweeper-transformers "

API_KEY_VARIABLE = "SWEEPER_API_KEY"
"""Environment variable by which the server is told its key."""

INFO_PATH = "/server_info"
"""Where the server tells the arguments in effect, read off the model and its worker."""


def tell(kind: str, **values: Any) -> str:
    """A line of the log."""
    return MARK + json.dumps({"kind": kind, **values}, sort_keys=True)


def told(log_text: str, kind: str) -> dict[str, Any]:
    """All values of the lines of a kind, later ones winning; empty if there is none."""
    values: dict[str, Any] = {}
    for line in log_text.splitlines():
        if line.startswith(MARK):
            try:
                entry = json.loads(line.removeprefix(MARK))
            except ValueError:
                continue  # the server died while it wrote the line
            if entry.pop("kind", None) == kind:
                values.update(entry)
    return values
