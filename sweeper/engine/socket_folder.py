"""A folder for the sockets by which an engine's processes speak to each other.

vLLM makes several a launch, in the system's temporary folder, and never removes them. In a folder
of their own for each set of devices they go with the launch, also with one that was killed: the
lock on the devices keeps two launches apart, so whoever holds it may empty the folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sweeper.engine.devices import set_key
from sweeper.engine.runtime_folder import own_folder
from sweeper.errors import EngineError

# The kernel takes addresses of 107 bytes, and vLLM's names are a slash and a UUID.
LONGEST_FOLDER = 107 - 1 - 36


def socket_folder(devices: Sequence[str]) -> Path | None:
    """Where the sockets of a launch on `devices` go; None if no place is good for it."""
    try:
        folder = own_folder().resolve() / f"sockets-{set_key(devices)}"
    except EngineError:
        return None
    return folder if len(str(folder).encode()) <= LONGEST_FOLDER else None


@contextmanager
def emptied(folder: Path | None) -> Iterator[None]:
    """Have a folder empty at first and gone at last; None does nothing. Needs the devices' lock."""
    if folder is None:
        yield
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
