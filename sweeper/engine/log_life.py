"""How far the life of a server got, as its log tells it; and any log explained by that. Pure.

    starting ──(ready)──► ready ──(first request)──► serving ──(asked to end)──► stopped
       │                    │                           │
       └────────────────────┴─────(died)────────────────┴──► a cause is looked for

A log may hold several runs, where a container was restarted: the last one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sweeper.engine.log_lines import Line, last_line, lines, tail
from sweeper.engine.needles import Quick
from sweeper.verdicts import Diagnosis, Phase, Verdict

_RUN_STARTS = Quick(r"\bnon-default args: \{|^args: Namespace\(")
_READY = Quick(r"\bApplication startup complete\b|^listening on port \d+$")
_SERVING = Quick(
    r'"POST /\S{1,200} HTTP/[\d.]+" 200\b|\bAvg generation throughput: (?:[1-9]|0\.0?[1-9])'
)
_STOPPING = Quick(r"^Shutting down$|\bshutdown triggered\b|\bWaiting for application shutdown")
_DIED = Quick(
    r"EngineDeadError|encountered a fatal error|died unexpectedly|Engine core initialization failed"
    r"|failed to start|is already dead|Fatal Python error|core dumped|^Killed\b"
    r"|^terminate called after throwing|Segmentation fault|Bus error|worker is lost"
)


@dataclass(frozen=True)
class Life:
    """Where the last run in a log got to.

    Attributes:
        begins: number of its first line.
        ready: number of the line that says it was ready, None if it never was.
        served: True if a request was answered.
        stopping: number of the line that says it was asked to end, None if it was not.
        died: True if a line says that one of its processes died before it was asked to end.
    """

    begins: int = 0
    ready: int | None = None
    served: bool = False
    stopping: int | None = None
    died: bool = False

    @property
    def failed_in(self) -> Phase:
        """The phase of what went wrong, if anything did."""
        if self.ready is None:
            return Phase.START
        return Phase.LOAD if self.served else Phase.WARMUP

    @property
    def phase(self) -> Phase:
        """The phase that the run got to."""
        ended = self.ready is not None and self.stopping is not None and not self.died
        return Phase.STOP if ended else self.failed_in


def ready_line(log: Sequence[Line]) -> int | None:
    """Number of the line that says that the server was ready; None if it never was."""
    return next((line.number for line in log if _READY.search(line.text)), None)


def life(log: Sequence[Line]) -> Life:
    """How far the last run in a log got."""
    found = Life()
    for line in log:
        text = line.text
        if _RUN_STARTS.search(text):
            found = Life(begins=line.number)
        elif found.ready is None and _READY.search(text):
            found = replace(found, ready=line.number)
        elif not found.served and _SERVING.search(text):
            # Of a log whose beginning is cut off this is the first sign that it was ready.
            ready = line.number if found.ready is None else found.ready
            found = replace(found, served=True, ready=ready)
        elif found.stopping is None and _STOPPING.search(text):
            found = replace(found, stopping=line.number)
        elif found.stopping is None and line.may_be_cause and _DIED.search(text):
            found = replace(found, died=True)
    return found


Explain = Callable[[str, Phase, int | None], Diagnosis]


def explain(log_text: str, diagnose: Explain, no_cause: str) -> Diagnosis:
    """Explain the log of any server, whether or not it failed.

    Args:
        log_text: the log; of several runs in it the last is looked at.
        diagnose: the engine's diagnosis of a launch that failed.
        no_cause: what `diagnose` gives as the cause where it finds none.

    Returns:
        What `diagnose` found, in the phase that the log tells. Without a failure the verdict is
        OK if the server was ready, UNKNOWN if the log ends before that.
    """
    log = lines(log_text)
    run = life(log)
    # A run that was asked to end says much on its way that is no failure.
    last = run.stopping if run.ready is not None and not run.died else None
    first = run.begins if run.ready is None else run.ready
    found = diagnose("\n".join(map(_as_log, log[first:last])), run.failed_in, None)
    if found.cause == no_cause or not _is_fatal(found, run):
        return _no_failure(log, run, found, no_cause)
    return found


def _as_log(line: Line) -> str:
    """A cleaned line as a log writes it: without its level, what is no cause would become one."""
    level = "DEBUG" if line.quoted else line.level
    return f"{level} 01-01 00:00:00 [log:1] {line.text}" if level else line.text


def _is_fatal(found: Diagnosis, run: Life) -> bool:
    """An exception that no rule knows ends a server only if something says that it ended."""
    return run.ready is None or run.died or "rule" in found.learnt


def _no_failure(log: Sequence[Line], run: Life, found: Diagnosis, no_cause: str) -> Diagnosis:
    end = last_line(log)
    if run.ready is None:
        if not end:
            return Diagnosis(
                Verdict.UNKNOWN, Phase.START, "the log is empty", "give the log of a server"
            )
        return Diagnosis(
            Verdict.UNKNOWN,
            run.phase,
            f"no failure found: the log ends before a server was ready, with: {end}"[:500],
            "if the process has ended, its exit code says more (137 or -9: out of host memory? see "
            "dmesg); if it still runs, it is still starting",
            tail(log),
        )
    how = "was asked to end" if run.stopping is not None else "still ran where the log ends"
    cause = f"no failure found: the server was ready and {how}"
    if found.cause != no_cause:
        cause += f"; an exception that did not end it: {found.cause}"
    remedy = "none needed"
    if run.stopping is None:
        remedy += (
            "; a process that has vanished without a word was killed from outside, perhaps for "
            "want of host memory (dmesg tells)"
        )
    return Diagnosis(Verdict.OK, run.phase, cause[:500], remedy, tail(log))
