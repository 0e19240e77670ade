"""Show what failed launches taught a study; take a bound back, or let it hold again.

usage: python -m sweeper bounds study=NAME [drop=ID|all] [restore=ID|all] [format=table|json]

A bound is a region of the space in which nothing is launched any more, because a trial that failed
proves that a launch there fails too. Dropped bounds stay dropped when the study goes on, a study
that runs notices at its next candidate, and deployments that only a dropped bound had refused can
be proposed again. A bound inside which a trial worked is dropped by itself.

examples:
  python -m sweeper bounds study=NAME
  python -m sweeper bounds study=NAME drop=all
  python -m sweeper bounds study=NAME restore=all format=json

exit codes: 0 shown, 1 the study's record cannot be read, 2 bad input
"""

from __future__ import annotations

import difflib

from sweeper.errors import ConfigError
from sweeper.report.bounds_text import bounds_json, render_bounds
from sweeper.search.bounds.learn import Lessons, learn, refused_counts
from sweeper.search.bounds.store import read_dropped, write_dropped
from sweeper.verbs.studies import choice, open_study, take

ALL = "all"


def run(arguments: list[str]) -> int:
    """Change which bounds hold, if asked to, and print them."""
    form, rest = choice(arguments, "format", ["table", "json"])
    drop, rest = take(rest, "drop")
    restore, rest = take(rest, "restore")
    study = open_study(rest)
    path = study.paths.dropped_bounds_json
    dropped = read_dropped(path)
    lessons = learn(study.outcomes, dropped)
    wanted = dropped | _chosen("drop", drop, [bound.id for bound in lessons.everything])
    wanted -= _chosen("restore", restore, sorted(dropped))
    if wanted != dropped:
        write_dropped(path, wanted)
        lessons = learn(study.outcomes, wanted)
    print(_shown(lessons, form, refused_counts(study.outcomes), study.paths.name))
    return 0


def _shown(lessons: Lessons, form: str, refused: dict[str, int], study: str) -> str:
    if form == "json":
        return bounds_json(lessons, refused)
    return render_bounds(lessons, refused, study)


def _chosen(verb: str, asked: str | None, known: list[str]) -> frozenset[str]:
    """The ids that a command line means.

    Raises:
        ConfigError: none of the study's bounds is called so.
    """
    if asked is None:
        return frozenset()
    if asked == ALL:
        return frozenset(known)
    if asked not in known:
        near = difflib.get_close_matches(asked, known, n=1)
        hint = f"did you mean {verb}={near[0]}? " if near else ""
        listed = f"bounds to {verb}: {', '.join(known)}" if known else f"there is none to {verb}"
        raise ConfigError(f"{verb}={asked} is no bound of this study", hint + listed)
    return frozenset({asked})
