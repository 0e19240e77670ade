"""Room on the disk: enough before a launch is paid for, and a reserve so that its line fits."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sweeper.errors import StudyError

MIN_FREE_BYTES = 64 << 20
"""A launch writes its log, its requests and a journal line; engines keep their caches elsewhere."""
RESERVE_BYTES = 1 << 20
"""Longer than any journal line: points, manifest and an excerpt of a log."""


def secure_room(reserve: Path) -> None:
    """Prove that a launch can be recorded, before it is started.

    Args:
        reserve: the study's reserve file, made if it is not there; its folder is the study's.

    Raises:
        StudyError: the folder is gone, cannot be written, or its disk is full.
    """
    folder = reserve.parent
    try:
        disk = os.statvfs(folder)
        free_bytes = disk.f_bavail * disk.f_frsize
        if free_bytes < MIN_FREE_BYTES:
            raise _full(folder, f"{free_bytes >> 20} MiB are free, {MIN_FREE_BYTES >> 20} needed")
        # A file system that counts no files says 0 of 0.
        if disk.f_files and not disk.f_favail:
            raise _full(folder, "it can hold no more files")
        _hold(reserve)
    except FileNotFoundError as error:
        raise StudyError(
            f"the study's folder {folder} is gone; nothing more is launched",
            "bring it back (a mount, a rename, a deletion), or start again with study=NEW_NAME",
        ) from error
    except OSError as error:
        raise StudyError(
            f"cannot write into {folder} ({error.strerror or error}); nothing more is launched",
            "make the folder writable or free space on its disk (or in your quota), then run the "
            "same command again: it goes on from there",
        ) from error


def give_back(reserve: Path) -> None:
    """Free the reserve: the disk is full and there is a line to write."""
    with suppress(OSError):
        reserve.unlink(missing_ok=True)


def _hold(reserve: Path) -> None:
    descriptor = os.open(reserve, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Blocks of its own, not a hole: space that only looks taken would be no reserve.
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    finally:
        os.close(descriptor)


def _full(folder: Path, how: str) -> StudyError:
    return StudyError(
        f"the disk of {folder} is full ({how}); nothing more is launched, everything measured is "
        "kept",
        "free space there (old studies' trials/*/server.log and requests.parquet, mlflow-artifacts"
        "), then run the same command again: it goes on from there",
    )
