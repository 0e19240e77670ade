"""Limits of the process that a study raises for itself, as far as it may."""

from __future__ import annotations

import resource
from contextlib import suppress

WANTED_FILES = 65536


def raise_file_limit() -> None:
    """Allow as many open files as the machine lets us: a connection a stream is one each.

    Shells give 1024, or 256, where 65536 could be had for the asking.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
