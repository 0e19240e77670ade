"""Show what a study has done so far, and who runs it where; without a study list them all.

usage: python -m sweeper status [study=NAME] [studies_dir=DIR] [watch=true|false]
                                [format=table|json]

While the study runs, in another process or on another machine that shares the folder, the first
lines say who runs it, since when, what it is doing now, and what is the best so far; then follow
the trials, and what is left of the budget. watch=true shows it anew every two seconds until the
study ends; Ctrl-C ends the watching, not the study.

Under "learnt" stand the regions in which nothing is launched any more because of a trial that
failed, and how many proposals each refused; `python -m sweeper bounds study=NAME drop=ID` takes
one back.

examples:
  python -m sweeper status
  python -m sweeper status study=NAME
  python -m sweeper status study=NAME watch=true
  python -m sweeper status study=NAME studies_dir=/shared/studies format=json

exit codes: 0 shown (whatever the study's state), 1 its record cannot be read, 2 bad input
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sweeper.config.trust import WARNING, runs_model_code
from sweeper.errors import ConfigError, SweeperError
from sweeper.pareto.points import latest_attempts
from sweeper.redaction import redact_data
from sweeper.report.presence_text import Listed, render_list, render_presence, state_words
from sweeper.report.prior_text import render_prior
from sweeper.report.text import render_status
from sweeper.search.bounds.learn import learn
from sweeper.search.bounds.store import read_dropped
from sweeper.search.progress import take_stock
from sweeper.tracking import bulletin
from sweeper.tracking.paths import StudyPaths
from sweeper.tracking.presence import Presence, presence
from sweeper.trial.outcome import TrialOutcome
from sweeper.verbs.studies import OpenedStudy, choice, open_study, studies_folder, take

WATCH_EVERY_S = 2.0
_WIPE = "\x1b[H\x1b[2J"
"""Terminal: to the upper left, and clear."""


def run(arguments: list[str]) -> int:
    """Print where a study, or every study of the folder, stands."""
    form, rest = choice(arguments, "format", ["table", "json"])
    watch, rest = choice(rest, "watch", ["false", "true"])
    name, others = take(rest, "study")
    if name is None:
        return _list(others, form)
    if watch == "false":
        _show(rest, form)
        return 0
    with suppress(KeyboardInterrupt):  # the watching ends as it is meant to; the study goes on
        while _show(rest, form, anew=True):
            time.sleep(WATCH_EVERY_S)
    return 0


def _show(arguments: list[str], form: str, *, anew: bool = False) -> bool:
    """Print where a study stands; True if somebody works on it."""
    study = open_study(arguments)
    now = bulletin.read(study.paths.now_json)
    who = presence(study.paths, now[0].number if now else None)
    text = _as_json(study, who, now) if form == "json" else _as_text(study, who, now)
    wipe = _WIPE if anew and sys.stdout.isatty() else ""
    print(f"{wipe}{text}", flush=True)
    return who.runs


def _list(arguments: list[str], form: str) -> int:
    """Print every study of the folder."""
    folder, rest = studies_folder(arguments)
    if rest:
        raise ConfigError(
            f"status does not take {rest[0]} without a study",
            "name it, study=NAME; or list all studies with studies_dir=DIR and format=table|json",
        )
    found = [_listed(folder, study) for study in _names(folder)]
    print(_list_json(found) if form == "json" else render_list(found, str(folder)))
    return 0


def _as_text(study: OpenedStudy, who: Presence, now: Sequence[bulletin.Now]) -> str:
    """All of a study's state for the eye."""
    progress = take_stock(study.cfg, study.outcomes)
    lessons = learn(study.outcomes, read_dropped(study.paths.dropped_bounds_json))
    parts = [
        render_presence(who, now, progress, time.time()),
        render_status(study.outcomes, study.paths.name, progress, lessons),
    ]
    if told := render_prior(study.outcomes, study.cfg):
        parts.append(told)
    if runs_model_code(study.cfg):
        parts.append(WARNING)
    return "\n\n".join(parts)


def _as_json(study: OpenedStudy, who: Presence, now: Sequence[bulletin.Now]) -> str:
    """The same for programs; what is not known is null."""
    data = {
        "study": study.paths.name,
        **_who_json(who),
        "now": [asdict(trial) for trial in now] if who.runs else [],
        "trials": dict(_verdicts(study.outcomes)),
        "progress": asdict(take_stock(study.cfg, study.outcomes)),
    }
    return json.dumps(redact_data(data), indent=2, ensure_ascii=False, allow_nan=False)


def _list_json(studies: Sequence[Listed]) -> str:
    data = [
        {
            "study": study.name,
            **_who_json(study.presence),
            "trials": dict(study.verdicts),
            "best": study.best or None,
            "fault": study.fault or None,
        }
        for study in studies
    ]
    return json.dumps(redact_data(data), indent=2, ensure_ascii=False, allow_nan=False)


def _who_json(who: Presence) -> dict[str, Any]:
    return {
        "state": state_words(who),
        "said": who.said,
        "host": who.host or None,
        "pid": who.pid,
        "since": who.since or None,
        "last_sign_of_life_s": who.alive_s,
    }


def _names(folder: Path) -> list[str]:
    with suppress(OSError):
        return sorted(path.parent.name for path in folder.glob("*/study.yaml"))
    return []


def _listed(folder: Path, name: str) -> Listed:
    """A study in the list; one that cannot be read has its fault there, and the others stay."""
    paths = StudyPaths(folder, name)
    who = presence(paths)
    try:
        study = open_study([f"study={name}", f"studies_dir={folder}"])
    except SweeperError as error:
        return Listed(name, who, fault=error.message.splitlines()[0])
    best = take_stock(study.cfg, study.outcomes).best
    return Listed(name, who, _verdicts(study.outcomes), best)


def _verdicts(outcomes: Sequence[TrialOutcome]) -> Counter[str]:
    return Counter(str(outcome.verdict) for outcome in latest_attempts(outcomes))
