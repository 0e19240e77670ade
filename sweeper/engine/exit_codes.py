"""What the end of a process tells where its log is silent. Pure.

A process that the kernel kills for want of host memory writes nothing, and so does one that
somebody kills by hand: signal 9 alone is no proof of either. It stays UNKNOWN, which the study
tries once more; only a text of the kernel, of Ray or of Kubernetes makes it a lack of memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeper.engine.log_lines import Line

SHELL_SIGNAL_BASE = 128
MAX_SIGNAL = 64

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
_BY_MACHINE = {
    4: (
        "illegal_instruction",
        "this build of the engine is made for another processor: install one for this machine",
    ),
    7: (
        "shared_memory",
        "shared memory is too small: give the container more (--shm-size=8g, or --ipc=host; an "
        "emptyDir of medium Memory at /dev/shm on Kubernetes), and free /dev/shm",
    ),
}
_WORKER_EXIT = re.compile(
    r"died(?: unexpectedly)?,? \(?exit ?code: (-?\d{1,4})\b"
    r"|terminated by signal (\d{1,2})\b"
)


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    Attributes:
        cause: one line.
        rule: name of a fault of the machine, None if the end proves none.
        remedy: what to change; empty without a rule.
        learnt: the signal or the exit code.
    """

    cause: str
    rule: str | None = None
    remedy: str = ""
    learnt: dict[str, Any] = field(default_factory=dict)


def ending(exit_code: int | None) -> Ending:
    """What an exit code means; a shell and a container add 128 to the signal's number."""
    code = exit_code or 0
    signal = -code if code < 0 else code - SHELL_SIGNAL_BASE
    if not 0 < signal <= MAX_SIGNAL:
        cause = f"ended by itself with exit code {code}, and its log names no cause"
        return Ending(cause, learnt={"exit_code": code})
    meaning = SIGNAL_NAMES.get(signal)
    cause = f"killed by signal {signal}" + (f" ({meaning})" if meaning else "")
    rule, remedy = _BY_MACHINE.get(signal, (None, ""))
    return Ending(cause, rule, remedy, {"signal": signal})


def told_exit_code(log: Sequence[Line]) -> int | None:
    """The signal that the log says a worker was ended by, as a negative exit code."""
    for line in log:
        if line.level in {"DEBUG", "INFO"}:
            continue
        match = _WORKER_EXIT.search(line.text)
        if match is None:
            continue
        code = int(match.group(1)) if match.group(1) is not None else -int(match.group(2))
        if code < 0:
            return code
    return None
