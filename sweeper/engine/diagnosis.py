"""Finding the root cause in a server's log: what is common to all engines. Pure.

Reading order of a log (in a later phase than the start, what came after readiness goes first):

    raw line → prefixes and colours stripped → not progress, not a warning, not quoted source
             → first line that a rule knows          → its verdict
             → else first line that follows from another failure, if none stands before it
             → else first line of a known kind       → its verdict (`last_resort`); a kind that is
                                                       known by where it was raised: at start only
             → else first exception, no wrapper      → UNKNOWN with that as the cause
             → else the signal, exit code or tail    → UNKNOWN, INFRA where the signal tells it

Wrapper lines ("see root cause above") are never the class of a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sweeper.engine.exit_codes import ending, told_exit_code
from sweeper.engine.log_life import ready_line
from sweeper.engine.log_lines import MAX_EVIDENCE_CHARS, Line, lines, tail
from sweeper.engine.log_messages import EXCEPTION, message, raised_at
from sweeper.engine.needles import Index
from sweeper.engine.rules import Learnt, Rule
from sweeper.verdicts import Diagnosis, Phase, Verdict

NO_CAUSE = "the log names no cause, and the process still ran"
MACHINE = "machine"
"""`learnt["scope"]` of a fault that every launch on this machine will meet alike."""
EVIDENCE_LINES_BEFORE = 6
EVIDENCE_LINES_AFTER = 4

_AFTER_START = frozenset({Phase.WARMUP, Phase.LOAD, Phase.QUALITY, Phase.STOP})


DEAD_INSIDE = "a process of the engine ended without a word, and its server with it"
_DEAD_INSIDE_REMEDY = (
    "it was killed from outside, or by the kernel for memory: look for it in the kernel's log "
    "(dmesg); if it stands there, lower what the launch takes of the host's memory"
)


@dataclass(frozen=True)
class _Found:
    """A line with the rule that knows it, or an exception that none knows."""

    line: Line
    rule: Rule | None = None
    match: re.Match[str] | None = None


def diagnose(
    log_text: str,
    phase: Phase,
    exit_code: int | None,
    *,
    rules: Sequence[Rule],
    wrappers: re.Pattern[str],
    last_resort: Sequence[Rule] = (),
    dead_inside: re.Pattern[str] | None = None,
) -> Diagnosis:
    """Explain a failed launch. Never raises, whatever the text.

    Args:
        log_text: the server's log.
        phase: where the launch was; a capacity or configuration fault after the start is a crash
            under load.
        exit_code: of the server's process; negative if a signal ended it, None if it still ran.
        rules: known texts; of several on one line the first wins.
        wrappers: lines that only say that there is a cause elsewhere.
        last_resort: kinds of texts, asked only where no rule knows any line.
        dead_inside: lines by which a server tells that a process of its own has gone.
    """
    log = lines(log_text)
    ready_at = ready_line(log) if phase in _AFTER_START else None
    # Where it was raised makes a refusal only of what a server says before it is ready.
    kinds = [rule for rule in last_resort if phase is Phase.START or rule.raised_in is None]
    found = None
    if ready_at is not None:
        # What a server said before it was ready did not keep it from becoming so.
        found = _cause(log[ready_at:], log, rules, wrappers, kinds)
    found = found or _cause(log, log, rules, wrappers, kinds)
    if found is None:
        diagnosis = _silent(log, phase, exit_code, dead_inside)
    elif found.rule is None:
        half = MAX_EVIDENCE_CHARS // 2
        evidence = f"{_around(log, found.line.number, half - 5)}\n...\n{tail(log)[-half:]}"
        diagnosis = _unclear(phase, message(log, found.line)[0], evidence)
    else:
        diagnosis = _from_rule(found, found.rule, log, log_text)
    return settle(diagnosis, phase)


def settle(diagnosis: Diagnosis, phase: Phase) -> Diagnosis:
    """The verdict of a cause in the phase where it struck.

    "Started" is not "feasible": what goes wrong once the server was healthy is a crash under load,
    with the same bounds learnt. Faults of the machine stay what they are.
    """
    crashes = {Verdict.CAPACITY, Verdict.INFEASIBLE_CONFIG, Verdict.UNKNOWN}
    if phase in {Phase.WARMUP, Phase.LOAD, Phase.QUALITY} and diagnosis.verdict in crashes:
        return replace(diagnosis, phase=phase, verdict=Verdict.CRASH_UNDER_LOAD)
    return replace(diagnosis, phase=phase)


def _cause(
    part: Sequence[Line],
    log: Sequence[Line],
    rules: Sequence[Rule],
    wrappers: re.Pattern[str],
    last_resort: Sequence[Rule],
) -> _Found | None:
    """The line that explains a failure best, in the order that the module tells."""
    following: _Found | None = None
    kind: _Found | None = None
    exception: _Found | None = None
    seen: set[str] = set()
    listed, kinds = _table(tuple(rules)), _table(tuple(last_resort))
    for line in part:
        if not line.may_be_cause or not line.text or line.text in seen:
            continue
        seen.add(line.text)
        known, resort = _known(line, listed, log), _known(line, kinds, log)
        raised = EXCEPTION.match(line.text.strip()) is not None
        if not (known or resort or raised) or wrappers.search(line.text):
            continue
        if known is not None and known.rule is not None and not known.rule.follows:
            return known
        if resort is not None and resort.rule is not None and resort.rule.raised_in is not None:
            # What was raised before it may be what it follows from.
            resort = resort if exception is None else None
        following, kind = following or known, kind or resort
        if exception is None and raised:
            exception = _Found(line)
    if following is not None and (
        exception is None or following.line.number <= exception.line.number
    ):
        return following
    return kind or exception


class _Table:
    """Rules in their order, with what tells quickly which of them may know a line."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self.index = Index([rule.pattern for rule in rules])


@lru_cache(maxsize=16)
def _table(rules: tuple[Rule, ...]) -> _Table:
    return _Table(rules)


def _known(line: Line, table: _Table, log: Sequence[Line]) -> _Found | None:
    """The first rule that knows a line, raised where the rule asks for."""
    for number in table.index.candidates(line.text):
        rule = table.rules[number]
        match = rule.pattern.search(line.text)
        if match is not None and _raised_there(line, rule, log):
            return _Found(line, rule, match)
    return None


def _raised_there(line: Line, rule: Rule, log: Sequence[Line]) -> bool:
    if rule.raised_in is None:
        return True
    frame = raised_at(log, line.number)
    return frame is not None and rule.raised_in.search(frame.path) is not None


def _from_rule(found: _Found, rule: Rule, log: Sequence[Line], log_text: str) -> Diagnosis:
    cause, learnt = message(log, found.line)
    if rule.learn is not None and found.match is not None:
        learnt.update(rule.learn(found.match))
    refined = rule.judge(learnt, log_text) if rule.judge is not None else None
    verdict, remedy = refined if refined is not None else (rule.verdict, rule.remedy)
    learnt["rule"] = rule.name
    if rule.every_launch and verdict is Verdict.INFRA:
        learnt["scope"] = MACHINE
    evidence = _around(log, found.line.number)
    return Diagnosis(verdict, Phase.START, cause, remedy, evidence, learnt)


def _silent(
    log: Sequence[Line],
    phase: Phase,
    exit_code: int | None,
    dead_inside: re.Pattern[str] | None,
) -> Diagnosis:
    """The log names no cause: what the end of the process tells."""
    told = told_exit_code(log) if exit_code is None or exit_code >= 0 else None
    by_itself = told is None and (exit_code is None or exit_code >= 0)
    if by_itself and dead_inside and any(dead_inside.search(line.text) for line in log):
        return replace(_unclear(phase, DEAD_INSIDE, tail(log)), remedy=_DEAD_INSIDE_REMEDY)
    if exit_code is None and told is None:
        return _unclear(phase, NO_CAUSE, tail(log))
    end = ending(told if told is not None else exit_code)
    if end.rule is None:
        return replace(_unclear(phase, end.cause, tail(log)), learnt=end.learnt)
    learnt: Learnt = {**end.learnt, "rule": end.rule, "scope": MACHINE}
    return Diagnosis(Verdict.INFRA, phase, end.cause, end.remedy, tail(log), learnt)


def _unclear(phase: Phase, cause: str, evidence: str) -> Diagnosis:
    return Diagnosis(
        Verdict.UNKNOWN,
        phase,
        cause,
        "no rule knows this text: read the log (server.log in a trial's folder) from its first "
        "error on",
        evidence,
    )


def _around(log: Sequence[Line], number: int, limit: int = MAX_EVIDENCE_CHARS) -> str:
    """The lines around one; the one itself stays whole as far as it can."""
    first = max(0, number - EVIDENCE_LINES_BEFORE)
    chosen = [line for line in log[first : number + EVIDENCE_LINES_AFTER + 1] if line.text]
    if sum(len(line.text) + 1 for line in chosen) <= limit:
        return "\n".join(line.text for line in chosen)
    share = limit // (2 * len(chosen))
    return "\n".join(
        line.text[: limit // 2 if line.number == number else share - 1] for line in chosen
    )
