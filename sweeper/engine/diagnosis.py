"""Finding the root cause in a server's log: what is common to all engines. Pure.

Reading order of a log:

    raw line → prefixes and colours stripped → not progress, not a warning, not quoted source
             → first line that a rule knows      → its verdict
             → else first exception, no wrapper  → UNKNOWN with that as the cause
             → else the exit code or the tail    → UNKNOWN

Wrapper lines ("see root cause above") are never the class of a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sweeper.verdicts import Diagnosis, Phase, Verdict

Learnt = dict[str, float | int | str]

EVIDENCE_LINES_BEFORE = 6
EVIDENCE_LINES_AFTER = 2
TAIL_LINES = 25
MAX_EVIDENCE_CHARS = 4000
MAX_CAUSE_CHARS = 500

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PREFIXES = re.compile(
    r"""^(?:
        \([A-Za-z_][\w.:-]*\s+(?:pid|rank|ip)=[^)]*\)\s?        # (EngineCore_DP0 pid=1234)
      | \[rank\d+\]:\s?                                         # [rank0]:
      | \[vllm\]:\s?
      | (?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+                # ERROR 10-25 13:08:43 [core.py:708]
        \d\d-\d\d\s\d\d:\d\d:\d\d\s\[[^\]]*\]\s?
    )""",
    re.VERBOSE,
)
_LEVEL = re.compile(
    r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d\s\d\d:\d\d:\d\d\s\[|^INFO: "
)
_PYDANTIC_TAIL = re.compile(r"\s*\[type=\w+, input_value=.*$")
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)"
)
_FILE_LINE = re.compile(r'^\s*File ".*", line \d+')

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
class Line:
    """One line of a log, cleaned.

    Attributes:
        number: place in the log, from 0.
        text: without colours, process prefixes and log headers; indentation kept.
        level: log level, or empty for bare output such as a traceback.
        quoted: True for a line of source code inside a traceback.
    """

    number: int
    text: str
    level: str = ""
    quoted: bool = False

    @property
    def may_be_cause(self) -> bool:
        return not self.quoted and self.level not in {"DEBUG", "INFO", "WARNING"}


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
    """

    name: str
    pattern: re.Pattern[str]
    verdict: Verdict
    remedy: str
    versions: str = ""
    learn: Callable[[re.Match[str]], Learnt] | None = None
    judge: Callable[[Learnt, str], tuple[Verdict, str] | None] | None = None


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


def clean(raw: str) -> str:
    """A line without colours, process names, log header, and pydantic's wrapping.

    >>> clean("(EngineCore_DP0 pid=7) ERROR 10-25 13:08:43 [core.py:708] ValueError: no")
    'ValueError: no'
    """
    text = _ANSI.sub("", raw).rstrip()
    while (match := _PREFIXES.match(text)) is not None and match.end():
        text = text[match.end() :]
    stripped = text.lstrip()
    if stripped.startswith("Value error, "):
        text = stripped.removeprefix("Value error, ")
    return _PYDANTIC_TAIL.sub("", text)


def lines(log_text: str) -> list[Line]:
    """All lines of a log, cleaned and marked."""
    return list(_marked(log_text))


def _marked(log_text: str) -> Iterator[Line]:
    in_frame = False
    for number, raw in enumerate(re.split(r"[\r\n]+", log_text)):
        plain = _ANSI.sub("", raw)
        level = _LEVEL.search(plain)
        text = clean(raw)
        if _FILE_LINE.match(text):
            in_frame = True
            yield Line(number, text, quoted=True)
            continue
        in_frame = in_frame and text.startswith("    ")
        name = (level.group(1) or "INFO") if level is not None else ""
        yield Line(number, text, name, quoted=in_frame)


def diagnose(
    log_text: str,
    phase: Phase,
    exit_code: int | None,
    *,
    rules: Sequence[Rule],
    wrappers: re.Pattern[str],
) -> Diagnosis:
    """Explain a failed launch.

    Args:
        log_text: the server's log.
        phase: where the launch was; a capacity or configuration fault after the start is a crash
            under load.
        exit_code: of the server's process; negative if a signal ended it, None if it still ran.
        rules: known texts; of several on one line the first wins.
        wrappers: lines that only say that there is a cause elsewhere.
    """
    log = lines(log_text)
    found = _known_cause(log, rules, wrappers)
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


def last_line(log_text: str) -> str:
    """The last line that says something, cleaned; empty for an empty log."""
    for line in reversed(lines(log_text)):
        if line.text.strip():
            return line.text.strip()[:MAX_CAUSE_CHARS]
    return ""


def tail(log_text: str, count: int = TAIL_LINES) -> str:
    """The end of a log, cleaned, for evidence."""
    said = [line.text for line in lines(log_text) if line.text.strip()]
    return "\n".join(said[-count:])[-MAX_EVIDENCE_CHARS:]


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
    said = [line for line in log if line.text.strip()]
    end = "\n".join(line.text for line in said[-TAIL_LINES:])[-MAX_EVIDENCE_CHARS:]
    for line in said:
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
        return "the log names no cause, and the process still ran"
    if exit_code < 0:
        meaning = SIGNAL_NAMES.get(-exit_code)
        return f"killed by signal {-exit_code}" + (f" ({meaning})" if meaning else "")
    return f"ended by itself with exit code {exit_code}, and its log names no cause"


def _around(log: Sequence[Line], number: int) -> str:
    first = max(0, number - EVIDENCE_LINES_BEFORE)
    chosen = log[first : number + EVIDENCE_LINES_AFTER + 1]
    return "\n".join(line.text for line in chosen if line.text)[-MAX_EVIDENCE_CHARS:]


def _one_line(text: str) -> str:
    """An exception's message without its class where the class says nothing more."""
    said = re.sub(
        r"^(?:[\w.]+\.)?(?:ValueError|RuntimeError|AssertionError|Exception):\s*", "", text.strip()
    )
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
