"""Finding the root cause in a server's log: what is common to all engines. Pure.

Reading order of a log:

    raw line → prefixes and colours stripped → not progress, not a warning, not quoted source
             → first line that a rule knows      → its verdict
             → else first line of a known kind   → its verdict (`last_resort`)
             → else first exception, no wrapper  → UNKNOWN with that as the cause
             → else the exit code or the tail    → UNKNOWN

Wrapper lines ("see root cause above") are never the class of a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sweeper.engine.log_lines import MAX_CAUSE_CHARS, MAX_EVIDENCE_CHARS, Line, lines, tail
from sweeper.verdicts import Diagnosis, Phase, Verdict

Learnt = dict[str, float | int | str]

NO_CAUSE = "the log names no cause, and the process still ran"
EVIDENCE_LINES_BEFORE = 6
EVIDENCE_LINES_AFTER = 2

_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)"
)
_PLAIN_CLASS = re.compile(r"^(?:ValueError|RuntimeError|AssertionError|Exception)(?::\s*|(?=\())")
_QUOTED_MESSAGE = re.compile(r"""^\((["'])(.*)\1,?\)$""")
SIGNAL_NAMES = {
    1: "hung up",
    2: "interrupted",
    4: "illegal instruction: built for another processor?",
    6: "aborted",
    7: "bus error: shared memory full?",
    8: "arithmetic fault",
    9: "out of host memory?",
    11: "segmentation fault",
    15: "asked to end from outside",
}


@dataclass(frozen=True)
class Rule:
    """One text that an engine is known to fail with.

    Attributes:
        name: short identifier.
        pattern: searched in a cleaned line.
        verdict: what it means at start.
        remedy: what the user can change.
        versions: engine versions in which the text was seen.
        learn: figures from the match, named with units.
        judge: refines the verdict by figures of the match and the rest of the log.
        cause_below: the matched line only announces the cause, which is the line below it.
    """

    name: str
    pattern: re.Pattern[str]
    verdict: Verdict
    remedy: str
    versions: str = ""
    learn: Callable[[re.Match[str]], Learnt] | None = None
    judge: Callable[[Learnt, str], tuple[Verdict, str] | None] | None = None
    cause_below: bool = False


def rule(
    name: str,
    pattern: str,
    verdict: Verdict,
    remedy: str,
    versions: str = "all",
    **kinds: type[int] | type[float] | type[str],
) -> Rule:
    """A rule whose named groups are its figures, each with its type."""
    learn = groups(**kinds) if kinds else None
    return Rule(name, re.compile(pattern), verdict, remedy, versions, learn)


SURROUNDINGS: tuple[Rule, ...] = (
    rule("disk_full", r"No space left on device", Verdict.INFRA, "free disk space or /dev/shm"),
    rule(
        "hub_unreachable",
        r"LocalEntryNotFoundError|couldn't connect to 'https://huggingface\.co'"
        r"|OfflineModeIsEnabled",
        Verdict.INFRA,
        "the model is not in the local cache and its hub cannot be reached: download it first, or "
        "give a local folder",
    ),
)
"""What any engine on this machine may run into."""


def diagnose(
    log_text: str,
    phase: Phase,
    exit_code: int | None,
    *,
    rules: Sequence[Rule],
    wrappers: re.Pattern[str],
    last_resort: Sequence[Rule] = (),
) -> Diagnosis:
    """Explain a failed launch.

    Args:
        log_text: the server's log.
        phase: where the launch was; a capacity or configuration fault after the start is a crash
            under load.
        exit_code: of the server's process; negative if a signal ended it, None if it still ran.
        rules: known texts; of several on one line the first wins.
        wrappers: lines that only say that there is a cause elsewhere.
        last_resort: kinds of texts, asked only where no rule knows any line.
    """
    log = lines(log_text)
    found = _known_cause(log, rules, wrappers) or _known_cause(log, last_resort, wrappers)
    if found is not None:
        diagnosis = _from_rule(found, log, log_text, phase)
    else:
        diagnosis = _unknown(log, phase, exit_code, wrappers)
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


def _known_cause(
    log: Sequence[Line], rules: Sequence[Rule], wrappers: re.Pattern[str]
) -> tuple[Line, Rule, re.Match[str]] | None:
    for line in log:
        if not line.may_be_cause or not line.text or wrappers.search(line.text):
            continue
        for rule in rules:
            match = rule.pattern.search(line.text)
            if match is not None:
                return line, rule, match
    return None


def _from_rule(
    found: tuple[Line, Rule, re.Match[str]], log: Sequence[Line], log_text: str, phase: Phase
) -> Diagnosis:
    line, rule, match = found
    learnt: Learnt = rule.learn(match) if rule.learn is not None else {}
    verdict, remedy = rule.verdict, rule.remedy
    if rule.cause_below:
        line = next((below for below in log[line.number + 1 :] if below.text.strip()), line)
    refined = rule.judge(learnt, log_text) if rule.judge is not None else None
    if refined is not None:
        verdict, remedy = refined
    return Diagnosis(
        verdict=verdict,
        phase=phase,
        cause=_one_line(line.text),
        remedy=remedy,
        evidence=_around(log, line.number),
        learnt={**learnt, "rule": rule.name},
    )


def _unknown(
    log: Sequence[Line], phase: Phase, exit_code: int | None, wrappers: re.Pattern[str]
) -> Diagnosis:
    end = tail(log)
    for line in log:
        head = line.text.strip()
        if line.may_be_cause and _EXCEPTION.match(head) and not wrappers.search(head):
            evidence = f"{_around(log, line.number)}\n...\n{end}"[-MAX_EVIDENCE_CHARS:]
            return _unclear(phase, _one_line(head), evidence)
    return _unclear(phase, _ending(exit_code), end)


def _unclear(phase: Phase, cause: str, evidence: str) -> Diagnosis:
    return Diagnosis(
        Verdict.UNKNOWN,
        phase,
        cause,
        "no rule knows this text: read server.log in the trial's folder from its first error on",
        evidence,
    )


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return NO_CAUSE
    if exit_code < 0:
        meaning = SIGNAL_NAMES.get(-exit_code)
        return f"killed by signal {-exit_code}" + (f" ({meaning})" if meaning else "")
    return f"ended by itself with exit code {exit_code}, and its log names no cause"


def _around(log: Sequence[Line], number: int) -> str:
    first = max(0, number - EVIDENCE_LINES_BEFORE)
    chosen = log[first : number + EVIDENCE_LINES_AFTER + 1]
    return "\n".join(line.text for line in chosen if line.text)[-MAX_EVIDENCE_CHARS:]


def _one_line(text: str) -> str:
    """An exception's message without its class, where the class says nothing more."""
    said = _PLAIN_CLASS.sub("", text.strip())
    if (quoted := _QUOTED_MESSAGE.match(said)) is not None:
        said = quoted.group(2)
    return (said or text.strip())[:MAX_CAUSE_CHARS]


def number(text: str) -> float:
    """A figure as logs write it, thousands separated by commas."""
    return float(text.replace(",", ""))


def groups(**kinds: type[int] | type[float] | type[str]) -> Callable[[re.Match[str]], Learnt]:
    """A `Rule.learn` that takes named groups as figures; those that did not match are left out."""

    def learn(match: re.Match[str]) -> Learnt:
        values: Mapping[str, str | None] = match.groupdict()
        learnt: Learnt = {}
        for name, kind in kinds.items():
            text = values.get(name)
            if text is not None:
                learnt[name] = text if kind is str else kind(number(text))
        return learnt

    return learn
