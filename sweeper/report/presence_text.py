"""Who works on a study and what it is at, and a list of all studies, as text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.redaction import shown
from sweeper.report.terminal import plain, table
from sweeper.report.words import deployment_text, seconds
from sweeper.tracking.bulletin import Now
from sweeper.tracking.ending import KILLED, status_of
from sweeper.tracking.presence import Presence, State
from sweeper.trial.progress import StudyProgress

QUIET_S = 600.0
"""After so long without a sign of life a running study is worth a look."""


@dataclass(frozen=True)
class Listed:
    """A study in the list of all.

    Attributes:
        name: of its folder.
        presence: who works on it; None if that was not asked because it cannot be read.
        verdicts: trials by verdict.
        best: the best so far, one line.
        fault: why it cannot be read; empty if it can.
    """

    name: str
    presence: Presence
    verdicts: Counter[str] = field(default_factory=Counter)
    best: str = ""
    fault: str = ""


def state_words(presence: Presence) -> str:
    """The state in a few words."""
    if presence.state is State.RUNNING:
        return "suspended" if presence.suspended else "running"
    if presence.state is State.ENDED:
        return "interrupted" if status_of(presence.said) == KILLED else "ended"
    return str(presence.state)


def render_presence(
    presence: Presence, now: Sequence[Now], progress: StudyProgress, now_s: float
) -> str:
    """Who runs the study, what it is at, the best so far.

    Args:
        presence: who works on it.
        now: trials under way.
        progress: where it stands.
        now_s: seconds since 1970.
    """
    lines = [f"{state_words(presence)}: {presence.said}"]
    if presence.runs and presence.alive_s is not None:
        quiet = "; has it hung? see the server.log of its trial" * (presence.alive_s > QUIET_S)
        lines[0] += f"; last sign of life {seconds(presence.alive_s)} ago{quiet}"
    if presence.state in {State.RUNNING, State.UNKNOWN}:
        lines += [line for trial in now for line in _trial(trial, now_s)]
        if presence.runs and not now:
            lines.append("now: between two trials")
    elif presence.state is State.KILLED:
        lines += [f"it was at trial {trial.number}, {_phase(trial)}" for trial in now]
    lines.append(f"best so far: {progress.best or 'nothing measured yet'}")
    if progress.front_size:
        lines[-1] += f"; front: {progress.front_size} points"
    return "\n".join(shown(line) for line in lines)


def _trial(trial: Now, now_s: float) -> list[str]:
    of = f" of {trial.of_launches}" if trial.of_launches is not None else ""
    done = f"; measured: {', '.join(trial.levels_done)}" if trial.levels_done else ""
    return [
        f"now: launch {trial.launch}{of}, trial {trial.number} ({trial.kind}), "
        f"{_ago(trial.started_at_s, now_s)} in it: {_phase(trial)}, for "
        f"{_ago(trial.phase_since_s, now_s)}{done}",
        f"     {deployment_text(trial.deployment)}",
    ]


def _phase(trial: Now) -> str:
    return f"{trial.phase} {trial.detail}".strip()


def _ago(then_s: float, now_s: float) -> str:
    # The clocks of two machines differ; a negative age is no age.
    return seconds(max(0.0, now_s - then_s))


def render_list(studies: Sequence[Listed], folder: str) -> str:
    """All studies of a folder, the last touched first."""
    if not studies:
        return f"no study in {folder} yet: `python -m sweeper` runs the default one"
    made = table(f"studies in {folder}", ["study", "state", "trials"])
    made.add_column("changed", justify="right", no_wrap=True)
    made.add_column("best so far, or what is wrong", overflow="fold")
    for study in sorted(studies, key=_touched):
        alive_s = study.presence.alive_s
        made.add_row(
            study.name,
            _where(study.presence),
            _tally(study.verdicts),
            "" if alive_s is None else f"{seconds(alive_s)} ago",
            shown(study.fault or study.best),
        )
    return plain(made)


def _where(presence: Presence) -> str:
    words = state_words(presence)
    return f"{words} on {presence.host}, {presence.pid}" if presence.runs else words


def _tally(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())) or "none"


def _touched(study: Listed) -> tuple[bool, float]:
    alive_s = study.presence.alive_s
    return (not study.presence.runs, float("inf") if alive_s is None else alive_s)
