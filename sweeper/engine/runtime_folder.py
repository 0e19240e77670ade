"""Where the tuners of one machine meet: lock files for devices, and notes of running launches.

Locks are for all users of the machine, so their folder must be the same for everybody: the first
of a fixed list that everybody may write to and nobody may remove others' files from, judged by its
mode and not by who asks. The environment variable `SWEEPER_RUNTIME_DIR` names another one, for
example a folder shared by containers that share GPUs. Notes are in a folder of each user's own,
because what they name is sent signals.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from sweeper.errors import EngineError

VARIABLE = "SWEEPER_RUNTIME_DIR"
_SHARED = (Path("/run/lock"), Path("/dev/shm"))


def shared_folder() -> Path:
    """The folder of the locks. Raises EngineError if the one that was named cannot be made."""
    named = os.environ.get(VARIABLE)
    if named:
        folder = Path(named).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise EngineError(
                f"{VARIABLE}={named}: the folder cannot be made ({problem.strerror or problem})",
                f"let {VARIABLE} name a folder that can be written",
            ) from problem
        return folder
    for folder in _SHARED:
        if _is_for_everybody(folder):
            return folder
    return Path(tempfile.gettempdir())


def own_folder() -> Path:
    """This user's folder for notes, made if it is not there.

    Raises:
        EngineError: it cannot be made, or something else stands in its place.
    """
    folder = shared_folder() / f"sweeper-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as problem:
        raise EngineError(
            f"{folder} cannot be made ({problem.strerror or problem})", _remedy(folder)
        ) from problem
    # What another user has put here could make us signal processes of its choice.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise EngineError(f"{folder} is not a folder of this user alone", _remedy(folder))
    return folder


def _is_for_everybody(folder: Path) -> bool:
    try:
        mode = folder.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX) and mode & 0o777 == 0o777


def _remedy(folder: Path) -> str:
    return f"remove {folder}, or name another place with the environment variable {VARIABLE}"
