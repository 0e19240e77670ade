"""Faults that are the study's and not a deployment's: when a row of them ends it. Pure.

    the same fault of the surroundings three launches in a row → the study stops
    the same fault of the machine itself two launches in a row → the study stops
    anything that is retried, three trials in a row            → the study stops

A text that no rule knows, a slow start or an invalid measurement may still be the deployment's: two
such deployments in a row, retries and all, must not end a study that runs overnight. Only the
launches of the current run count: whoever resumes has mended something. One launch that says
anything of its deployment (it worked, or failed for reasons of its own) ends a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

MAX_SAME_IN_A_ROW = 3
MAX_OF_MACHINE_IN_A_ROW = 2
MAX_TRIALS_IN_A_ROW = 3

_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d[\d.,]*")

Excused = Callable[[TrialOutcome], bool]
"""Whether a fault has been dealt with (a learnt bound fences it off) and no longer counts."""


@dataclass(frozen=True)
class Persistent:
    """A fault that will not go away by trying further deployments.

    Attributes:
        message: what happened how often, one line.
        last: the launch that showed it last.
    """

    message: str
    last: TrialOutcome


def persistent(
    launches: Sequence[TrialOutcome], excused: Excused = lambda _: False
) -> Persistent | None:
    """The fault that the last launches of this run share, None if the study may go on.

    Args:
        launches: every attempt of this run that was launched, oldest first.
        excused: faults that no longer count.
    """
    return _same_fault(launches, excused) or _any_faults(launches, excused)


def masked(text: str) -> str:
    """A text without its numbers, by which two causes are known to be the same."""
    return _NUMBERS.sub("#", text).strip()


def is_of_machine(outcome: TrialOutcome) -> bool:
    """True for a fault that every deployment on this machine would meet."""
    return outcome.learnt.get("scope") == "machine"


def _same_fault(launches: Sequence[TrialOutcome], excused: Excused) -> Persistent | None:
    row: list[TrialOutcome] = []
    kind = None
    for outcome in reversed(launches):
        found = None if excused(outcome) else _kind(outcome)
        if found is None or (kind is not None and found != kind):
            break
        kind = found
        row.insert(0, outcome)
    limit = MAX_OF_MACHINE_IN_A_ROW if row and is_of_machine(row[-1]) else MAX_SAME_IN_A_ROW
    if len(row) < limit:
        return None
    last = row[-1]
    trials = ", ".join(str(number) for number in dict.fromkeys(o.number for o in row))
    rule = last.learnt.get("rule")
    name = f" ({rule})" if rule else ""
    return Persistent(
        f"the same fault{name} {len(row)} launches in a row, in trial {trials}: "
        f"{last.verdict} in phase {last.phase}: {last.cause}",
        last,
    )


def _any_faults(launches: Sequence[TrialOutcome], excused: Excused) -> Persistent | None:
    """Trials count by their last attempt, and only once they are over: a retry may still help."""
    latest = {outcome.number: outcome for outcome in launches}
    row = 0
    for outcome in reversed(latest.values()):
        if not outcome.verdict.is_retryable or excused(outcome):
            break
        row += 1
    if row < MAX_TRIALS_IN_A_ROW or launches[-1].attempt % 2 == 1:
        return None
    last = launches[-1]
    return Persistent(
        f"{row} trials in a row failed for reasons that are not the deployment's; last: "
        f"{last.verdict}: {last.cause}",
        last,
    )


def _kind(outcome: TrialOutcome) -> str | None:
    """What a fault is recognised by; None if the launch may say something of its deployment."""
    if outcome.verdict is not Verdict.INFRA and not is_of_machine(outcome):
        return None
    rule = outcome.learnt.get("rule")
    return f"rule {rule}" if rule else f"cause {masked(outcome.cause)}"
