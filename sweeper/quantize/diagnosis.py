"""Why a checkpoint was not made: from a worker's end and the tail of its log to a verdict. Pure.

    what the worker says itself (no_cuda, unsupported, memory, calibration)     → its verdict
        → else the first text that a rule knows, in its last words, then in its log → its verdict
        → else how it ended (over its memory, out of time, killed)              → CAPACITY or INFRA
        → else UNKNOWN with the end of the log, and tried once more

The rules on engines' logs stand in a later room, and read another kind of text: a server's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweeper.quantize.rules import CAPACITY, DISK_FULL, INFRA, MORE_MEMORY, RULES, SAID, Rule
from sweeper.toolchain.worker import EndKind, WorkerEnd
from sweeper.verdicts import Diagnosis, Phase, Verdict

MACHINE = {"scope": "machine"}
"""Added to what is learnt of a fault that every other checkpoint would meet here, too."""
MAX_CAUSE_CHARS = 500
EVIDENCE_LINES = 25
MAX_EVIDENCE_CHARS = 4000
SIGKILL = -9

_OWN_PYTHON = "quantize.python=PATH names an interpreter that has the tool"


@dataclass(frozen=True)
class Circumstances:
    """What a failed making is judged by, beside its own words.

    Attributes:
        tool: name of the toolchain.
        memory_gib: host memory that it was allowed; None if it was not started.
        timeout_s: time that it was allowed.
    """

    tool: str
    memory_gib: float | None
    timeout_s: float


_GIVES_UP = re.compile(
    r"(?:[\w.]{1,200}\.)?[A-Z]\w{0,100}(?:Error|Exception|Interrupt|Exit)\b|error: "
    r"|terminate called|Fatal "
)
_TAKEN = re.compile(r"took (?P<gib>\d{1,6}(?:\.\d{1,3})?) GiB")
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,40}[a-zA-Z]")


def explain(end: WorkerEnd, log_tail: str, around: Circumstances) -> Diagnosis:
    """The verdict on a making that did not come to its end. Never raises, whatever the text.

    Args:
        end: of the worker; not `EndKind.DONE`.
        log_tail: end of its log.
        around: what it was given.
    """
    lines = [_ANSI.sub("", line).rstrip() for line in re.split(r"[\r\n]+", log_tail)]
    lines = [line for line in lines if line.strip()]
    evidence = "\n".join(lines[-EVIDENCE_LINES:])[-MAX_EVIDENCE_CHARS:]
    found = _said(end, around) or _known(end, lines) or _ended(end, around)
    return replace(found or _unknown(end, lines), evidence=evidence)


def _said(end: WorkerEnd, around: Circumstances) -> Diagnosis | None:
    """What a worker says of its own end; a rule on its words may know more of it."""
    if end.kind is not EndKind.FAILED or end.error not in SAID:
        return None
    name, verdict, remedy = SAID[end.error]
    rule = _rule_for(end.message, RULES)
    if rule is not None and rule.verdict is verdict:
        return _by_rule(rule, end.message)
    return unmade(name, verdict, end.message, remedy, **_figures(verdict, end, around))


def _known(end: WorkerEnd, lines: list[str]) -> Diagnosis | None:
    """The first text that a rule knows, where the end itself does not say more.

    Of the log only what raises or gives up is asked: tools warn of much that ends nothing.
    """
    rules = RULES if end.kind in {EndKind.FAILED, EndKind.DIED} else (DISK_FULL,)
    told = [line for line in lines if _GIVES_UP.match(line.strip()) and end.error != "missing"]
    for line in [end.message, *told]:
        rule = _rule_for(line, rules)
        if rule is not None:
            return _by_rule(rule, line)
    return None


def _ended(end: WorkerEnd, around: Circumstances) -> Diagnosis | None:
    """What the way it ended tells, whatever was written."""
    if end.kind is EndKind.NO_ENVIRONMENT or end.error == "missing":
        return unmade(
            "no_environment",
            INFRA,
            f"{around.tool} has no environment that works: {end.message}",
            f"connect to a package index, or {_OWN_PYTHON}",
        )
    if end.kind is EndKind.TIMED_OUT:
        return unmade(
            "quantize_timeout",
            INFRA,
            f"it was not made in {around.timeout_s:.0f} s",
            "allow more time with quantize.timeout_s=SECONDS, or take fewer and shorter texts",
        )
    was_killed = end.kind is EndKind.DIED and end.exit_code == SIGKILL
    if end.kind is EndKind.OUT_OF_MEMORY or was_killed:
        return unmade(
            "quantize_memory",
            CAPACITY,
            end.message or "it was killed, as the kernel does where memory runs out",
            f"raise quantize.memory_gib if the machine has more; or {MORE_MEMORY}",
            **_figures(CAPACITY, end, around),
        )
    return None


def _unknown(end: WorkerEnd, lines: list[str]) -> Diagnosis:
    raised = next((line for line in reversed(lines) if _GIVES_UP.match(line.strip())), "")
    code = "" if end.exit_code is None else f" with exit code {end.exit_code}"
    cause = end.message or raised or f"it ended{code} without a word"
    remedy = "no rule knows this: read quantize.log in the trial's folder"
    return unmade("quantize_failed", Verdict.UNKNOWN, cause, remedy)


def _rule_for(line: str, rules: Sequence[Rule]) -> Rule | None:
    return next((rule for rule in rules if rule.pattern.search(line)), None)


def _by_rule(rule: Rule, line: str) -> Diagnosis:
    return unmade(
        rule.name, rule.verdict, line, rule.remedy, **(MACHINE if rule.of_machine else {})
    )


def _figures(verdict: Verdict, end: WorkerEnd, around: Circumstances) -> dict[str, Any]:
    """Memory that was to be had and, where the end tells it, what was taken."""
    if verdict is not CAPACITY:
        return {}
    taken = _TAKEN.search(end.message)
    needed = {} if taken is None else {"needed_memory_gib": float(taken["gib"])}
    if around.memory_gib is None:
        return needed
    return {"available_memory_gib": round(around.memory_gib, 2), **needed}


def unmade(rule: str, verdict: Verdict, cause: str, remedy: str, **learnt: Any) -> Diagnosis:
    """Why there is no checkpoint: one line, under the name of a rule, with the figures learnt."""
    told = " ".join(cause.split())[:MAX_CAUSE_CHARS] or "it ended without a word"
    return Diagnosis(verdict, Phase.QUANTIZE, told, remedy, learnt={"rule": rule, **learnt})
