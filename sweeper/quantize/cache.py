"""The checkpoints made on this machine: what each is called, which there are, which have to go.

    <cache_dir>/checkpoints/<key>/     a whole checkpoint and its manifest
                            <key>.partial-<pid>/     one in the making, or what a kill left of it

The key is a digest of all that decides a checkpoint's content, so that two who ask for the same
find the same folder. How a folder comes about and is kept whole: `sweeper.models.cache`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from sweeper.models.cache import (
    Check,
    is_held,
    last_used_s,
    leftovers,
    remove_unused,
    unchanged,
    verified,
)
from sweeper.quantize.job import CheckpointJob

FOLDER = "checkpoints"
GIB = 2**30
_LAYOUT = 1
"""Part of every key: raise it when the same request would be answered by other files."""
_KEY = re.compile(r"(?P<key>[0-9a-f]{16})(?:\.partial-[\w-]+)?")


class State(StrEnum):
    """What a folder of the cache is good for."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    """It is not as its manifest says: made again when it is asked for."""
    UNFINISHED = "unfinished"
    """Only what a killed build left."""
    IN_THE_MAKING = "in the making"


@dataclass(frozen=True)
class Entry:
    """A checkpoint of the cache, or what is left of one.

    Attributes:
        key: its name.
        path: its folder, also where that is not there (yet).
        state: see `State`.
        size_bytes: of all its files.
        last_used_s: seconds since the epoch, None if it never was.
        in_use: a server runs from it, or somebody makes it.
        facts: its manifest; empty unless it is whole.
    """

    key: str
    path: Path
    state: State
    size_bytes: int
    last_used_s: float | None
    in_use: bool
    facts: Mapping[str, Any] = field(default_factory=dict)


def key_of(job: CheckpointJob, calibration: str | None, versions: Mapping[str, str]) -> str:
    """Name of a checkpoint, 16 hex digits. Pure.

    Args:
        job: model and recipe. The recipe's name does not count: it is only what the user calls it.
        calibration: digest of the texts, None if the recipe needs none.
        versions: of the tool and what it is built on.
    """
    recipe = {name: value for name, value in job.recipe.to_dict().items() if name != "name"}
    # A user's file of texts is known by its content, wherever it lies.
    recipe.pop("calibration", None)
    content = {
        "layout": _LAYOUT,
        "model": job.model_digest or [job.model_path, job.revision],
        "recipe": recipe,
        "calibration": calibration,
        "versions": dict(versions),
    }
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def folder_of(cache_dir: Path, key: str) -> Path:
    """Where the checkpoint of a key belongs."""
    return cache_dir / FOLDER / key


def usable(key: str, check: Check = unchanged) -> Check:
    """A check that a folder is whole and holds what its name says."""
    return partial(_usable, key, check)


def _usable(key: str, check: Check, folder: Path) -> dict[str, Any] | None:
    manifest = check(folder)
    return manifest if manifest is not None and manifest.get("key") == key else None


def content_digest(manifest: Mapping[str, Any]) -> str:
    """Digest of the files of a checkpoint by their names, 32 hex digits. Pure."""
    named = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:32]


def weight_bytes(manifest: Mapping[str, Any]) -> int:
    """Bytes of a checkpoint's weight files. Pure."""
    files = manifest["files"].items()
    return sum(entry["size_bytes"] for name, entry in files if name.endswith(".safetensors"))


def entries(cache_dir: Path, *, thorough: bool = False) -> list[Entry]:
    """Every checkpoint of a cache, last used first.

    Args:
        cache_dir: sweeper's cache. What has no name of ours in it is left alone.
        thorough: read every byte, and not only sizes and times.

    Raises:
        OSError: the cache cannot be read.
    """
    root = cache_dir / FOLDER
    if not root.is_dir():
        return []
    matches = [_KEY.fullmatch(path.name) for path in root.iterdir() if path.is_dir()]
    keys = {match["key"] for match in matches if match is not None}
    check = verified if thorough else unchanged
    found = [_entry(root / key, check) for key in sorted(keys)]
    return sorted(found, key=lambda entry: -(entry.last_used_s or 0.0))


def keep_within(
    cache_dir: Path, limit_gib: float, keep: str | None = None
) -> tuple[list[Entry], float]:
    """Remove what is worthless, then what was not used for longest, down to a size.

    What is used or made now stays, by whichever process of this machine.

    Args:
        cache_dir: sweeper's cache.
        limit_gib: for all checkpoints together.
        keep: key of one that stays whatever its age.

    Returns:
        What was removed, and the size of what stayed, in GiB.

    Raises:
        OSError: something cannot be removed.
    """
    there = entries(cache_dir)
    total = sum(entry.size_bytes for entry in there)
    removed = []
    for entry in sorted(there, key=_worth):
        has_to_go = total > limit_gib * GIB and entry.key != keep
        if has_to_go and remove_unused(entry.path):
            removed.append(entry)
            total -= entry.size_bytes
    return removed, total / GIB


def room_for(job: CheckpointJob, model_bytes: int) -> int:
    """Bytes that a checkpoint will take at most, guessed from its bits. Pure.

    What is not quantized (embeddings, norms) is a quarter of a small model and less of a large one.
    """
    share = 1.0 if job.recipe.bits is None else min(1.0, job.recipe.bits / 16 + 0.25)
    return int(model_bytes * share)


def _worth(entry: Entry) -> tuple[bool, float]:
    return entry.state not in {State.DAMAGED, State.UNFINISHED}, entry.last_used_s or 0.0


def _entry(folder: Path, check: Callable[[Path], dict[str, Any] | None]) -> Entry:
    held = is_held(folder)
    facts = usable(folder.name, check)(folder)
    if facts is not None:
        state = State.WHOLE
    elif leftovers(folder) and held:
        state = State.IN_THE_MAKING
    else:
        state = State.DAMAGED if folder.is_dir() else State.UNFINISHED
    return Entry(
        key=folder.name,
        path=folder,
        state=state,
        size_bytes=sum(_bytes_below(path) for path in (folder, *leftovers(folder))),
        last_used_s=last_used_s(folder),
        in_use=held,
        facts=facts or {},
    )


def _bytes_below(folder: Path) -> int:
    """Bytes of all files of a folder; what somebody removes meanwhile does not count."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
