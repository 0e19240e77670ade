"""The bounds that a study's user took back: a small file beside its journal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sweeper.errors import StudyError
from sweeper.tracking.paths import atomic_write_text


def read_dropped(path: Path) -> frozenset[str]:
    """Ids of dropped bounds; none if the file is not there.

    Raises:
        StudyError: it cannot be read, or says something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    ids = data.get("dropped") if isinstance(data, dict) else None
    if not isinstance(ids, list) or not all(isinstance(item, str) for item in ids):
        raise _damaged(path, "it has no list of ids under `dropped`")
    return frozenset(ids)


def write_dropped(path: Path, ids: Iterable[str]) -> None:
    """Replace the list. Raises StudyError if it cannot be written."""
    atomic_write_text(path, json.dumps({"dropped": sorted(set(ids))}, indent=2) + "\n")


def _damaged(path: Path, what: str) -> StudyError:
    return StudyError(
        f"{path} cannot be read ({what})",
        "remove the file (all bounds hold again), and drop with "
        "`python -m sweeper bounds study=NAME drop=ID` what is not to hold",
    )
