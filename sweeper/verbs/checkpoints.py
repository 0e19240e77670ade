"""List the quantized checkpoints that were made on this machine, check them, remove some.

usage: python -m sweeper checkpoints [format=table|json] [verify=true|false]
           [prune=KEY[,KEY]|all|damaged] [limit_gib=N] [cache_dir=PATH]

A checkpoint is made once for a model, a recipe, its calibration texts and the versions of its tool,
and shared by all studies. `verify=true` reads every byte; without it sizes and times are compared.
`prune` removes by key, `damaged` what is damaged or was left by a killed build, `all` everything;
`limit_gib` removes what was not used for longest until the rest is no larger. What a server runs
from, or somebody makes now, stays. What is removed is made again when a study asks for it.

examples:
  python -m sweeper checkpoints
  python -m sweeper checkpoints verify=true prune=damaged
  python -m sweeper checkpoints limit_gib=50 cache_dir=/data/cache format=json

exit codes: 0 done, 1 something named is in use and stayed, or the cache cannot be read; 2 bad input
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError, StudyError
from sweeper.models.cache import cache_dir, remove_unused
from sweeper.quantize.cache import FOLDER, Entry, State, entries, keep_within
from sweeper.redaction import shown
from sweeper.report.checkpoints_text import checkpoints_json, render_checkpoints
from sweeper.verbs.studies import choice, take

ALL, DAMAGED = "all", "damaged"


def run(arguments: list[str]) -> int:
    """Remove what is asked for, and print what is there; 1 if something named had to stay."""
    form, rest = choice(arguments, "format", ["table", "json"])
    verify, rest = choice(rest, "verify", ["false", "true"])
    asked, rest = take(rest, "prune")
    limit, rest = take(rest, "limit_gib")
    limit_gib = None if limit is None else _gib(limit)
    # Of all settings only the place of the cache has a meaning here.
    named, rest = take(rest, "cache_dir")
    if rest:
        raise ConfigError(
            f"checkpoints does not take {rest[0]}",
            "it takes format, verify, prune, limit_gib and cache_dir, each as key=value",
        )
    folder = cache_dir(SweeperConfig(cache_dir=named))
    if named is not None and (not named.strip() or folder.is_file()):
        what = "is a file" if named.strip() else "is empty"
        raise ConfigError(f"cache_dir={named} {what}", "give the folder of sweeper's cache")
    try:
        there = entries(folder, thorough=verify == "true")
        removed, kept = _prune(_chosen(asked, there))
        if limit_gib is not None:
            removed += keep_within(folder, limit_gib)[0]
    except OSError as problem:
        raise StudyError(
            f"the checkpoint cache in {folder} cannot be read or changed: {problem}",
            "see that its files are yours, or name another cache with cache_dir=PATH",
        ) from problem
    gone = {entry.key for entry in removed}
    left = [entry for entry in there if entry.key not in gone]
    render = checkpoints_json if form == "json" else render_checkpoints
    print(shown(render(folder / FOLDER, left, removed, kept)))
    return 1 if kept and asked not in {ALL, DAMAGED} else 0


def _chosen(asked: str | None, there: Sequence[Entry]) -> list[Entry]:
    """The entries that `prune` means.

    Raises:
        ConfigError: no checkpoint is called so.
    """
    if asked is None:
        return []
    if asked == ALL:
        return list(there)
    if asked == DAMAGED:
        worthless = {State.DAMAGED, State.UNFINISHED}
        return [entry for entry in there if entry.state in worthless]
    known = {entry.key: entry for entry in there}
    keys = [key.strip() for key in asked.split(",")]
    for key in keys:
        if key not in known:
            near = difflib.get_close_matches(key, [*known, ALL, DAMAGED], n=1)
            hint = f"did you mean prune={near[0]}? " if near else ""
            listed = f"keys here: {', '.join(known)}" if known else "the cache is empty"
            raise ConfigError(f"prune={key} is no checkpoint of this cache", hint + listed)
    return [known[key] for key in dict.fromkeys(keys)]


def _prune(chosen: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """(what was removed, what is in use and stayed)."""
    removed: list[Entry] = []
    kept: list[Entry] = []
    for entry in chosen:
        (removed if remove_unused(entry.path) else kept).append(entry)
    return removed, kept


def _gib(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ConfigError(f"limit_gib={text} is no size", "give GiB as a number, limit_gib=50")
    return value
