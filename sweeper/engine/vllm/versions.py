"""vLLM's version numbers. Pure."""

from __future__ import annotations

import re

Release = tuple[int, ...]

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)")
# A build from source without tags counts from here; no release of vLLM has a lower number.
_UNTAGGED = (0, 1)


def release_of(version: str) -> Release | None:
    """The release a version belongs to, None if it says nothing.

    ``0.32.0+cpu`` and ``0.11.0rc2.dev133+g1234`` are (0, 32, 0) and (0, 11, 0): what is on the way
    to a release has most of it. ``0.1.dev1`` is what a clone without tags calls itself.
    """
    match = _RELEASE.match(version.strip())
    if match is None:
        return None
    parts = [int(part) for part in match.group(1).split(".")]
    if "dev" in version and tuple(parts[:2]) == _UNTAGGED:
        return None
    return tuple(parts)


def is_between(version: str, since: Release | None, until: Release | None) -> bool:
    """Whether a version lies in ``since <= version < until``; an unknown one counts as newest."""
    release = release_of(version)
    if release is None:
        return until is None
    return (since is None or release >= since) and (until is None or release < until)
