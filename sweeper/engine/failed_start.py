"""Why a server did not become ready: from how the wait for it ended, and from its log."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from sweeper.engine import compile_cache, diagnosis
from sweeper.engine.log_lines import last_line, lines, tail
from sweeper.engine.readiness import Readiness, State
from sweeper.verdicts import Diagnosis, Phase, Verdict

FULL_DISK_BYTES = 1 << 20
MAX_MENTIONS = 12
# Longer lines are the engine's list of all its settings.
MAX_MENTION_CHARS = 600
CACHE_RULE = "compile_cache_corrupt"
Diagnose = Callable[[str, Phase, int | None], Diagnosis]


def explain_start(
    diagnose: Diagnose, outcome: Readiness, log_text: str, timeout_s: float
) -> Diagnosis:
    """Explain a start that did not end with a completion. Pure.

    A cause that the log names comes before a deadline: a hang is often only how it shows.
    """
    if outcome.state is State.FOREIGN:
        return _foreign(outcome, log_text)
    if outcome.state is State.DIED:
        return diagnose(log_text, outcome.phase, outcome.exit_code)
    known = diagnose(log_text, Phase.START, outcome.exit_code)
    if known.verdict is not Verdict.UNKNOWN:
        return diagnosis.settle(known, outcome.phase)
    if outcome.state is State.STALLED:
        return _stalled(outcome, log_text)
    if outcome.state is State.TIMED_OUT:
        return _timed_out(outcome, log_text, timeout_s)
    return replace(
        known,
        verdict=Verdict.CRASH_UNDER_LOAD,
        phase=Phase.WARMUP,
        cause=outcome.detail if known.cause == diagnosis.NO_CAUSE else known.cause,
        remedy="the server says that it is healthy and cannot complete a prompt: leave this "
        "combination out, and see server.log in the trial's folder",
    )


def with_surroundings(found: Diagnosis, log_path: Path) -> Diagnosis:
    """A cause that no log can tell: the disk is full that the log is written to."""
    nobody_knows = found.verdict is Verdict.UNKNOWN or (
        found.verdict is Verdict.CRASH_UNDER_LOAD and "rule" not in found.learnt
    )
    if not nobody_knows or not _is_full(log_path):
        return found
    return replace(
        found,
        verdict=Verdict.INFRA,
        cause=f"the disk of {log_path.parent} is full, so the server's log has no end "
        f"({found.cause})",
        remedy="free disk space, then resume the study",
        learnt={**found.learnt, "rule": "disk_full"},
    )


def cache_is_to_blame(found: Diagnosis, log_text: str) -> bool:
    """Whether a start died by a damaged cache of compiled code. Pure."""
    if found.learnt.get("rule") == CACHE_RULE:
        return True
    return found.verdict is Verdict.UNKNOWN and compile_cache.looks_damaged(log_text)


def _is_full(log_path: Path) -> bool:
    try:
        return shutil.disk_usage(log_path.parent).free < FULL_DISK_BYTES
    except OSError:
        return False


def _foreign(outcome: Readiness, log_text: str) -> Diagnosis:
    return Diagnosis(
        Verdict.INFRA,
        Phase.START,
        outcome.detail,
        "another server answers where ours should: end it, or keep it away from this machine's "
        "temporary ports",
        tail(lines(log_text)),
        {"rule": "foreign_port"},
    )


def _timed_out(outcome: Readiness, log_text: str, timeout_s: float) -> Diagnosis:
    return _late(
        outcome,
        log_text,
        f"not ready after {timeout_s:.0f} s: {outcome.detail}",
        "raise engine.start_timeout_s if the server was still at work; the next start finds the "
        "compile cache warm",
        "not_ready_in_time",
    )


def _stalled(outcome: Readiness, log_text: str) -> Diagnosis:
    return _late(
        outcome,
        log_text,
        f"the start hangs: {outcome.detail}",
        "the processes wait for each other or for a device: see the last line of server.log; "
        "raise engine.stall_timeout_s if the engine does work without a sign for that long",
        "start_stalled",
    )


def _late(outcome: Readiness, log_text: str, cause: str, remedy: str, rule: str) -> Diagnosis:
    log = lines(log_text)
    last = last_line(log)
    learnt = {"rule": rule, **({"last_log_line": last} if last else {})}
    text = f"{cause}; last line of the log: {last or '(none)'}"
    return Diagnosis(Verdict.STARTUP_TIMEOUT, outcome.phase, text, remedy, tail(log), learnt)


def without_effect(ignored: Mapping[str, str], log_text: str) -> Diagnosis:
    """Deployments that differ only in a flag without effect are one: the second has no number."""
    causes = "; ".join(f"{name} had no effect: {how}" for name, how in ignored.items())
    return Diagnosis(
        Verdict.INFEASIBLE_CONFIG,
        Phase.START,
        causes,
        f"take {', '.join(ignored)} out of the space or engine.args: this engine, with this model "
        "on this platform, puts a value of its own in its place",
        "\n".join(_mentions(ignored, log_text)) or tail(lines(log_text)),
        {"rule": "flag_without_effect", "ineffective": dict(ignored)},
    )


def _mentions(names: Iterable[str], log_text: str) -> list[str]:
    """Lines of the log that speak of a flag: among them stands why it was not followed."""
    words = [word for name in names for word in (name, name.replace("_", "-"))]
    found = [
        line.text
        for line in lines(log_text)
        if len(line.text) <= MAX_MENTION_CHARS and any(word in line.text for word in words)
    ]
    return found[:MAX_MENTIONS]
