"""What a check says: one line, and what to do where that is needed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a check ended, the worst last."""

    OK = "ok"
    UNKNOWN = "cannot tell"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """The answer of one check.

    Attributes:
        check: what was looked at, a short name.
        state: how it is.
        told: what was found, one line.
        remedy: how to mend it; empty where nothing is to be done.
    """

    check: str
    state: State
    told: str
    remedy: str = ""


def ok(check: str, told: str) -> Finding:
    """Nothing to do."""
    return Finding(check, State.OK, told)


def unknown(check: str, told: str, remedy: str = "") -> Finding:
    """This machine does not say, or not in time."""
    return Finding(check, State.UNKNOWN, told, remedy)


def warning(check: str, told: str, remedy: str) -> Finding:
    """A study runs, but something will be slow, left out or misleading."""
    return Finding(check, State.WARNING, told, remedy)


def problem(check: str, told: str, remedy: str) -> Finding:
    """A study would fail on this."""
    return Finding(check, State.PROBLEM, told, remedy)
