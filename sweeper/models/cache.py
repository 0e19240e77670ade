"""Folders that are made once and reused: where they live, and how one is made safely.

A folder in the cache is either whole or absent. It is built beside its final place and renamed into
it, under a lock, and carries a manifest with the digest of every file; a folder that does not match
its manifest is rebuilt.

    absent ──lock──▶ <name>.partial-<pid>/ ──manifest, rename──▶ <name>/ ──verify on reuse──▶ used
       ▲                                                            │ differs
       └────────────────────────── removed ◀────────────────────────┘
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ModelError

MANIFEST = "sweeper_manifest.json"
_CHUNK = 1 << 20

Progress = Callable[[str], None]


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
    final: Path, build: Callable[[Path], Mapping[str, Any]], progress: Progress
) -> dict[str, Any]:
    """Make the folder `final` if it is not there whole, and return its manifest.

    Args:
        final: where the folder belongs.
        build: fills the empty folder it is given; returns facts to keep beside the digests.
        progress: told in one line what takes time.

    Raises:
        ModelError: the cache cannot be written; whatever `build` raises passes through.
    """
    if (manifest := verified(final)) is not None:
        return manifest
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _locked(final, progress):
            # Another process may have finished while this one waited.
            if (manifest := verified(final)) is not None:
                return manifest
            return _build(final, build, progress)
    except OSError as error:
        raise ModelError(
            f"the cache folder {final.parent} cannot be used: {error}",
            "make room or give write permission, or choose another folder by "
            "cache_dir=PATH or the environment variable SWEEPER_CACHE_DIR",
        ) from error


def verified(folder: Path) -> dict[str, Any] | None:
    """The folder's manifest if every file in it is as the manifest says, else None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        whole = all(
            (folder / name).stat().st_size == entry["size_bytes"]
            and sha256_of(folder / name) == entry["sha256"]
            for name, entry in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if whole and files else None


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
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def _clear_leftovers(final: Path, progress: Progress) -> None:
    """Remove what an interrupted build or a damaged disk left. Called under the lock."""
    if final.exists():
        progress(f"{final} is damaged or incomplete; making it again")
        shutil.rmtree(final)
    for leftover in final.parent.glob(f"{final.name}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _digests(folder: Path) -> dict[str, dict[str, Any]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {
            "size_bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in files
    }


def _write_durably(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _locked(final: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock. The kernel frees it with the process, so none is ever stale."""
    with final.with_name(f".{final.name}.lock").open("w") as file:
        _wait_for(file, final, progress)
        yield


def _wait_for(file: IO[str], final: Path, progress: Progress) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress(f"another sweeper is making {final.name}; waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)
