"""What can go wrong with the mock: kinds of faults by stages of a server's life. Values only.

Stages, in the order in which a launch reaches them:

    start      before it listens
    listening  it listens, and has answered no health check yet
    ready      a completion is asked for, the first one included
    warmup     the prompts are tokenized
    load       a completion is asked for, after the first one and `after_requests` more
    quality    a completion that tells token ids or log-probabilities, after `after_requests` more
    stop       it is asked to end (TERM)

A death, a hang or garbage strikes at one of them (`die_at`, `hang_at`, `garbage_at`); everything
else in `Fault` lasts as long as the server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.engine.options import read_options
from sweeper.errors import ConfigError

STAGES = ("start", "listening", "ready", "warmup", "load", "quality", "stop")
ASKED_STAGES = ("ready", "warmup", "load", "quality")
"""Those at which a request is answered, and can be answered with garbage."""

GARBAGE = (
    "truncated_chunk",
    "not_utf8",
    "broken_json",
    "huge_header",
    "endless_body",
    "no_tokens",
    "error_in_200",
    "not_numbers",
    "no_http",
)
"""Answers that are none, see `sweeper.engine.mock.garbage`."""

CHILDREN = ("session", "daemon", "hidden", "zombie")
"""Processes that outlive the server, see `sweeper.engine.mock.children`."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        die_at: stage at which the process ends, by `exit_code`.
        hang_at: stage from which on it lives and answers no more; at `stop` it ignores TERM.
        garbage_at: stage from which on requests get the answer that `garbage` names.
        garbage: one of `GARBAGE`.
        after_requests: at `load` and `quality`, requests of that kind answered before it strikes.
        exit_code: of a death; negative kills the process by that signal.
        log_text: written to the log when it strikes.
        log_encoding: codec of `log_text`.
        log_mib: of ordinary log lines, written before `log_text`.
        log_binary: bytes of every value stand before `log_text`.
        http_500_after: completions answered before all others get HTTP 500; negative is never.
        unhealthy: `/health` answers HTTP 503.
        reset_connection_every: every so many completions the connection breaks; 0 is never.
        no_usage: answers come without token counts.
        nan_scores: log-probabilities and ranks are NaN.
        writes_stuck: it writes one token for ever, and reads soundly.
        writing_slips: share of contexts after which it writes what it would not choose; it reads
            soundly.
        batch_slips: the same, where several requests run at once.
        empty_first_chunk: streams begin with an empty chunk at once.
        shares_port: others may listen on its port too (SO_REUSEPORT), and it on theirs.
        model_name: the name it tells of its model, instead of the one it was given.
        slow_factor: factor on all times.
        slower_by: factor by which each completion takes longer than the one before, from 1 ms on.
        slow_start_s: seconds before it listens, with a line in the log every fifth of a second.
        child: what it starts and leaves behind, one of `CHILDREN`; none of them heeds TERM.
        keeps_gib: taken from `device_memory` at the start, and not given back.
        ignores: parameters that are accepted and then not followed, as if left out.
        pretends: the same, but the server tells that it follows them.
        once: a file; the fault strikes while it is not there, and makes it.
        chance: share of the launches in which it strikes.
        seed: of that chance. The same launch of a study always draws the same.
        when: parameter → values; the fault strikes only if the deployment has one of them
            (`default` stands for a parameter that is left out).
    """

    die_at: str = ""
    hang_at: str = ""
    garbage_at: str = ""
    garbage: str = "truncated_chunk"
    after_requests: int = 0
    exit_code: int = 1
    log_text: str = ""
    log_encoding: str = "utf-8"
    log_mib: int = 0
    log_binary: bool = False
    http_500_after: int = -1
    unhealthy: bool = False
    reset_connection_every: int = 0
    no_usage: bool = False
    nan_scores: bool = False
    writes_stuck: bool = False
    writing_slips: float = 0.0
    batch_slips: float = 0.0
    empty_first_chunk: bool = False
    shares_port: bool = False
    model_name: str = ""
    slow_factor: float = 1.0
    slower_by: float = 1.0
    slow_start_s: float = 0.0
    child: str = ""
    keeps_gib: float = 0.0
    ignores: list[str] = field(default_factory=list)
    pretends: list[str] = field(default_factory=list)
    once: str = ""
    chance: float = 1.0
    seed: int = 0
    when: dict[str, Any] = field(default_factory=dict)

    def strikes(self, parameters: Mapping[str, Any], launch: str = "") -> bool:
        """Whether a launch is one that it is meant for.

        Args:
            parameters: the deployment.
            launch: the served name, ``trial-NUMBER-ATTEMPT-...``; of it number and attempt count.
        """
        for name, values in self.when.items():
            wanted = values if isinstance(values, list) else [values]
            if parameters.get(name, "default") not in wanted:
                return False
        return self.chance >= 1.0 or _draw(self.seed, launch) < self.chance


def _draw(seed: int, launch: str) -> float:
    """A number in [0, 1) that depends on nothing else."""
    which = "-".join(launch.split("-")[:3])
    digest = hashlib.sha256(f"{seed}/{which}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def read_fault(fault: Mapping[str, Any], where: str = "fault") -> Fault:
    """One fault from its mapping. Raises ConfigError for what it does not know."""
    read = read_options(Fault, fault, where=where)
    for name, known in (
        ("die_at", STAGES),
        ("hang_at", STAGES),
        ("garbage_at", ASKED_STAGES),
        ("garbage", GARBAGE),
        ("child", CHILDREN),
    ):
        value = getattr(read, name)
        if value and value not in known:
            raise ConfigError(f"{where}.{name}={value!r} is not known", f"use {', '.join(known)}")
    try:
        read.log_text.encode(read.log_encoding)
    except (LookupError, UnicodeEncodeError) as problem:
        raise ConfigError(
            f"{where}.log_encoding: {problem}", "name a codec that can write log_text"
        ) from problem
    return read
