"""An engine's cache of compiled code: one a set of devices, wiped once if it is damaged.

Two running engines never share one, because the lock on the devices keeps them apart, and later
studies on the same devices find it warm. Only a folder that was made here is ever removed: it
carries a marker, lies below our cache without a link on the way, and belongs to this user.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

MARKER = ".sweeper-compile-cache"

_FRAME = re.compile(
    r'File ".*(?:torch/_inductor/|torch/_dynamo/|torch/_functorch/|torch/_export/|triton/runtime/'
    r'|vllm/compilation/).*", line \d+, in (?P<function>\w+)'
)
_READS = re.compile(r"load|deserialize|unpickle|lookup|from_cache|read|open|restore", re.IGNORECASE)
_DAMAGED = re.compile(
    r"^.{0,200}?\b(?:UnpicklingError|EOFError|BadZipFile|JSONDecodeError|UnicodeDecodeError"
    r"|FileNotFoundError|FileExistsError|ModuleNotFoundError|AttributeError|KeyError|ImportError"
    r"|BypassFxGraphCache|OSError|zlib\.error|struct\.error)\b",
    re.MULTILINE,
)


def looks_damaged(log_text: str) -> bool:
    """Whether a start died while it read compiled code back. Pure.

    Such deaths have a hundred texts. What they share is a frame of the compiler that reads an
    artefact, and an error of reading at the end of its traceback.
    """
    reading = [
        match.end() for match in _FRAME.finditer(log_text) if _READS.search(match.group("function"))
    ]
    return bool(reading) and _DAMAGED.search(log_text, reading[0]) is not None


def prepare(folder: Path) -> Path:
    """Make a cache folder with its marker; one that others have made is used, and not marked."""
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / MARKER).touch()
    return folder


def wipe(folder: Path, below: Path) -> str | None:
    """Remove a cache folder and make it anew.

    Args:
        folder: as given to `prepare`.
        below: our own cache; nothing on the way from there may be a link.

    Returns:
        None if it was wiped; otherwise why it was not, one line.
    """
    problem = _why_not(folder, below)
    if problem is not None:
        return problem
    aside = folder.with_name(f"{folder.name}.wiped-{os.getpid()}")
    try:
        folder.rename(aside)  # whole or not at all: half a cache would be the next damage
        shutil.rmtree(aside)
        prepare(folder)
    except OSError as error:
        return f"{folder} cannot be removed: {error.strerror or error}"
    return None


def _why_not(folder: Path, below: Path) -> str | None:
    if not folder.is_relative_to(below) or folder == below or ".." in folder.parts:
        return f"{folder} is not a folder below {below}"
    for place in (folder, *folder.parents):
        if place == below:
            break
        try:
            found = place.lstat()
        except OSError as error:
            return f"{place}: {error.strerror or error}"
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return f"{place} is a link, no folder, or another user's"
    return None if (folder / MARKER).is_file() else f"{folder} was not made by sweeper"
