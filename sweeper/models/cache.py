"""Folders that are made once and reused: where they live, and how one is made safely.

A folder in the cache is either whole or absent. It is built beside its final place and renamed into
it, under a lock, and carries a manifest with the digest of every file; a folder that does not match
its manifest is rebuilt.

    absent ──lock──▶ <name>.partial-<pid>/ ──manifest, rename──▶ <name>/ ──verify on reuse──▶ used
       ▲                                                            │ differs
       └────────────────────────── removed ◀────────────────────────┘

Two files beside a folder say what becomes of it: `.<name>.lock` is locked by whoever makes or
removes it, `.<name>.use` is shared by all that `hold` it, and its time is that of the last use.
They stay when the folder goes: removing one would let two processes lock two files of one name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ModelError

MANIFEST = "sweeper_manifest.json"
_CHUNK = 1 << 20
_LOCK, _USE = "lock", "use"

Progress = Callable[[str], None]
Check = Callable[[Path], dict[str, Any] | None]
"""The manifest of a folder that is whole, None for any other."""


def cache_dir(cfg: SweeperConfig) -> Path:
    """The user's cache: ``cache_dir=``, else $SWEEPER_CACHE_DIR, else the XDG cache folder."""
    named = cfg.cache_dir or os.environ.get("SWEEPER_CACHE_DIR")
    if named:
        return Path(named).expanduser().resolve()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "sweeper"


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def build_once(
    final: Path,
    build: Callable[[Path], Mapping[str, Any]],
    progress: Progress,
    check: Check | None = None,
) -> dict[str, Any]:
    """Make the folder `final` if it is not there whole, and return its manifest.

    Args:
        final: where the folder belongs.
        build: fills the empty folder it is given; returns facts to keep beside the digests.
        progress: told in one line what takes time.
        check: whether a folder that is there may be used; None asks `verified`.

    Raises:
        ModelError: the cache cannot be written; whatever `build` raises passes through.
    """
    check = check or verified
    if (manifest := check(final)) is not None:
        return manifest
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _locked(final, progress):
            # Another process may have finished while this one waited.
            if (manifest := check(final)) is not None:
                return manifest
            return _build(final, build, progress)
    except OSError as error:
        raise ModelError(
            f"the cache folder {final.parent} cannot be used: {error}",
            "make room or give write permission, or choose another folder by "
            "cache_dir=PATH or the environment variable SWEEPER_CACHE_DIR",
        ) from error


def verified(folder: Path) -> dict[str, Any] | None:
    """The folder's manifest if every file in it is as the manifest says, else None.

    Reads every byte.
    """
    return _checked(folder, _has_digest)


def unchanged(folder: Path) -> dict[str, Any] | None:
    """Like `verified`, but a file of the recorded size and time is not read.

    For what is used before every launch: reading 15 GB each time would cost minutes. Whatever
    writes to a file gives it another time, and then it is read.
    """
    return _checked(folder, _is_untouched)


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Keep a folder from being removed as long as it is used, be it there yet or not.

    Raises:
        OSError: the note of its use cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _beside(folder, _USE).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        os.utime(file.fileno())
        yield


def last_used_s(folder: Path) -> float | None:
    """When a folder was last held, in seconds since the epoch; None if it never was."""
    try:
        return _beside(folder, _USE).stat().st_mtime
    except OSError:
        return None


def is_held(folder: Path) -> bool:
    """Whether somebody on this machine uses the folder now, or makes it."""
    with ExitStack() as stack:
        return not all(
            stack.enter_context(_at_once(folder, kind))
            for kind in (_USE, _LOCK)
            if _beside(folder, kind).exists()
        )


def remove_unused(folder: Path) -> bool:
    """Remove a folder and what interrupted builds left of it. False if it is used or made now.

    Raises:
        OSError: it cannot be removed.
    """
    with ExitStack() as stack:
        # The locks are not waited for: whoever holds one may hold it for hours.
        if not all(stack.enter_context(_at_once(folder, kind)) for kind in (_USE, _LOCK)):
            return False
        for path in (folder, *leftovers(folder)):
            if path.exists():
                shutil.rmtree(path)
    return True


def leftovers(folder: Path) -> list[Path]:
    """What builds of a folder left that were killed; while it is being made, also that."""
    return sorted(folder.parent.glob(f"{folder.name}.partial-*"))


def _checked(
    folder: Path, is_same: Callable[[Path, Mapping[str, Any]], bool]
) -> dict[str, Any] | None:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        whole = all(
            (folder / name).stat().st_size == entry["size_bytes"] and is_same(folder / name, entry)
            for name, entry in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if whole and files else None


def _has_digest(path: Path, entry: Mapping[str, Any]) -> bool:
    return bool(sha256_of(path) == entry["sha256"])


def _is_untouched(path: Path, entry: Mapping[str, Any]) -> bool:
    found, recorded = path.stat(), entry.get("mtime_ns")
    if found.st_mtime_ns == recorded:
        return True
    if not _has_digest(path, entry):
        return False
    if isinstance(recorded, int):
        # A copied cache has other times. The content is right: do not read it again next time.
        with suppress(OSError):
            os.utime(path, ns=(found.st_atime_ns, recorded))
    return True


def _build(
    final: Path, build: Callable[[Path], Mapping[str, Any]], progress: Progress
) -> dict[str, Any]:
    _clear_leftovers(final, progress)
    partial = final.with_name(f"{final.name}.partial-{os.getpid()}")
    partial.mkdir()
    try:
        manifest = {
            **build(partial),
            "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "files": _digests(partial),
        }
        _write_durably(partial / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True))
        _reach_disk(partial)
        partial.rename(final)
        _reach_disk(final.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def _clear_leftovers(final: Path, progress: Progress) -> None:
    """Remove what an interrupted build or a damaged disk left. Called under the lock."""
    if final.exists():
        progress(f"{final} is damaged or incomplete; making it again")
        shutil.rmtree(final)
    for leftover in leftovers(final):
        shutil.rmtree(leftover, ignore_errors=True)


def _digests(folder: Path) -> dict[str, dict[str, Any]]:
    """What the manifest says of each file, which is on the disk by then."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        _reach_disk(path)
        status = path.stat()
        found[path.relative_to(folder).as_posix()] = {
            "size_bytes": status.st_size,
            "mtime_ns": status.st_mtime_ns,
            "sha256": sha256_of(path),
        }
    return found


def _reach_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, would outlast a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_durably(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _locked(final: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock. The kernel frees it with the process, so none is ever stale."""
    with _beside(final, _LOCK).open("w") as file:
        _wait_for(file, final, progress)
        yield


@contextmanager
def _at_once(folder: Path, kind: str) -> Iterator[bool]:
    """Lock one of a folder's two files for oneself alone, if nobody has it; whether it is so."""
    with _beside(folder, kind).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _beside(folder: Path, kind: str) -> Path:
    return folder.with_name(f".{folder.name}.{kind}")


def _wait_for(file: IO[str], final: Path, progress: Progress) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress(f"another sweeper is making {final.name}; waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)
