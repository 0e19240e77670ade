"""Folders that are written to, and what earlier studies left. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sweeper.doctor.facts import Facts, Folder
from sweeper.doctor.finding import Finding, ok, problem, unknown, warning

STUDIES, CACHE, HUB, TEMPORARY = "studies", "cache", "hub cache", "temporary files"
LEAST_GIB = {STUDIES: 0.2, CACHE: 2.0, HUB: 1.0, TEMPORARY: 0.2}
"""Below this a study fails; journals and logs are small, compile caches are not."""
AMPLE = 5
"""Below so many times as much there is a warning."""
FEW_INODES = 5000


def folders(facts: Facts) -> Iterator[Finding]:
    """Whether each can be written, and whether its disk has room."""
    for folder in facts.folders:
        if folder.error:
            yield problem(
                folder.what,
                f"{folder.path}: {folder.error}",
                f"make it writable for this user, or name another folder with {folder.key}",
            )
            continue
        yield _room(folder, facts)
        if folder.local_locks:
            yield warning(
                folder.what,
                f"{folder.path} is shared between machines, and its locks are not",
                "run a study on one machine only, or mount without nolock and local_lock",
            )


def _room(folder: Folder, facts: Facts) -> Finding:
    room = folder.room
    if room is None:
        return unknown(folder.what, f"{folder.path}: how much room its disk has cannot be read")
    least = LEAST_GIB.get(folder.what, 1.0) + _to_come(folder, facts)
    told = f"{folder.path}: {room.free_gib:.1f} of {room.total_gib:.0f} GiB free"
    remedy = f"free space there, or name a folder on a larger disk with {folder.key}"
    if room.free_gib < least:
        return problem(folder.what, f"{told}; about {least:.1f} GiB are needed", remedy)
    if room.free_inodes is not None and room.free_inodes < FEW_INODES:
        return problem(folder.what, f"{told}, but only {room.free_inodes} files", remedy)
    if room.free_gib < AMPLE * LEAST_GIB.get(folder.what, 1.0):
        return warning(folder.what, f"{told}: that is little", remedy)
    return ok(folder.what, told)


def _to_come(folder: Folder, facts: Facts) -> float:
    """GiB of weights that are not here yet and go into this folder."""
    wanted = facts.wanted
    if wanted.model_here is not False or not wanted.needs.checkpoint:
        return 0.0
    place = {"hub": HUB, "embedded": CACHE}.get(wanted.source)
    return (wanted.weights_gib or 0.0) if folder.what == place else 0.0


def left_behind(facts: Facts) -> Iterator[Finding]:
    """Servers of killed runs that still hold devices."""
    for study, pids in sorted(facts.orphans.items()):
        yield warning(
            "left behind",
            f"a killed run of study {study} left processes: {', '.join(map(str, pids))}",
            f"`python -m sweeper resume study={study}` ends them and goes on; or end them by "
            f"hand: kill {' '.join(map(str, pids))}",
        )
    if not facts.orphans:
        yield ok("left behind", "no server of an earlier run still runs")
