"""Verdict by phase: how each cell is reached on the mock, or why nothing can reach it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sweeper.verdicts import Phase, Verdict

Cell = tuple[Verdict, Phase]
Fault = dict[str, Any]

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB."
NO_CACHE = "ValueError: No available memory for the cache blocks."
DISK_FULL = "OSError: [Errno 28] No space left on device"

# One level of one stream is 1 + 4 requests, one of two streams 2 + 4 (warm-up, measured).
FIRST_LEVEL = 5
BOTH_LEVELS = 11


@dataclass(frozen=True)
class Case:
    """One way into a cell.

    Attributes:
        name: of the test.
        faults: of the mock.
        says: found in the cause.
        shows: found in the evidence.
        parameters: the deployment.
        dials: further options of the mock.
        plan: further fields of the plan.
        valid_points: load levels that must have been kept as valid.
        foreign: what takes the port between its choice and the server's bind, see
            `tests.faults.foreign`.
    """

    name: str
    faults: tuple[Fault, ...] = ()
    says: str = ""
    shows: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    dials: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    valid_points: int = 0
    foreign: str = ""


def case(name: str, *faults: Fault, **fields: Any) -> Case:
    return Case(name, faults, **fields)


SHORT = {"start_timeout_s": 1.5}
MEASURED = {"valid_points": 2}

BY_TRIAL: dict[Cell, tuple[Case, ...]] = {
    (Verdict.INFEASIBLE_CONFIG, Phase.START): (
        case("refused", parameters={"tensor_parallel_size": 3}, says="divisible by"),
        case(
            "flag_ignored",
            {"ignores": ["block_size"]},
            parameters={"block_size": 32},
            says="block_size had no effect",
        ),
    ),
    (Verdict.CAPACITY, Phase.START): (
        case("does_not_fit", parameters={"max_model_len": 400_000}, says="KV cache is needed"),
        case(
            "oom_then_exit_0",
            {"die_at": "start", "log_text": OOM, "exit_code": 0},
            says="out of memory",
            shows="Tried to allocate",
        ),
        case(
            "oom_while_listening",
            {"die_at": "listening", "log_text": NO_CACHE, "exit_code": 0},
            says="cache blocks",
        ),
        case(
            "oom_then_hang",
            {"hang_at": "start", "log_text": OOM},
            says="out of memory",
            plan=SHORT,
        ),
    ),
    (Verdict.INFRA, Phase.START): (
        case("port_stolen", foreign="listener", says="ddress already in use"),
        case("port_shared", {"shares_port": True}, foreign="shared", says="another program"),
        case("another_server", foreign="server", says="another program listens"),
        case("disk_full", {"die_at": "start", "log_text": DISK_FULL}, says="No space left"),
        case("another_model", {"model_name": "gpt2"}, says="gpt2"),
    ),
    (Verdict.STARTUP_TIMEOUT, Phase.START): (
        case("hang", {"hang_at": "start", "log_text": "Using nccl"}, says="nccl", plan=SHORT),
        case("hang_listening", {"hang_at": "listening"}, plan=SHORT),
        case("unhealthy", {"unhealthy": True}, says="503", plan=SHORT),
        case("hang_stop_too", {"hang_at": "start"}, {"hang_at": "stop"}, plan=SHORT),
    ),
    (Verdict.UNKNOWN, Phase.START): (
        case("silent_death", {"die_at": "start"}, says="exit code 1"),
        case("silent_exit_0", {"die_at": "start", "exit_code": 0}, says="exit code 0"),
        case("killed", {"die_at": "start", "exit_code": -9}, says="signal 9"),
        case("new_text", {"die_at": "start", "log_text": "KeyError: 'rope'"}, says="rope"),
        case("dies_listening", {"die_at": "listening", "exit_code": -11}, says="signal 11"),
    ),
    (Verdict.INFRA, Phase.WARMUP): (
        case("disk_full", {"die_at": "ready", "log_text": DISK_FULL}, says="No space left"),
    ),
    (Verdict.STARTUP_TIMEOUT, Phase.WARMUP): (
        case("hang", {"hang_at": "ready"}, says="completion", plan=SHORT),
        case("endless", {"garbage_at": "ready", "garbage": "no_tokens"}, plan=SHORT),
    ),
    (Verdict.CRASH_UNDER_LOAD, Phase.WARMUP): (
        case("death_at_first", {"die_at": "ready", "log_text": OOM}, says="out of memory"),
        case("error_at_first", {"http_500_after": 0}, says="HTTP 500"),
        case("death_tokenizing", {"die_at": "warmup", "exit_code": -6}, says="signal 6"),
        case(
            "oom_then_exit_0",
            {"die_at": "warmup", "log_text": OOM, "exit_code": 0},
            says="out of memory",
        ),
    ),
    (Verdict.MEASUREMENT_INVALID, Phase.WARMUP): (
        case("cannot_tokenize", {"garbage_at": "warmup", "garbage": "broken_json"}, says="JSON"),
    ),
    (Verdict.INFEASIBLE_CONFIG, Phase.LOAD): (
        case(
            "flag_exceeded",
            {"pretends": ["max_num_seqs"]},
            parameters={"max_num_seqs": 1},
            dials={"time_scale": 10.0},
            says="requests ran at once",
        ),
    ),
    (Verdict.CRASH_UNDER_LOAD, Phase.LOAD): (
        case("death", {"die_at": "load", "exit_code": -11}, says="signal 11"),
        case(
            "oom_then_exit_0",
            {"die_at": "load", "log_text": OOM, "exit_code": 0},
            says="out of memory",
        ),
        case(
            "death_at_second_level",
            {"die_at": "load", "after_requests": FIRST_LEVEL + 3},
            valid_points=1,
        ),
        case("hang", {"hang_at": "load", "after_requests": FIRST_LEVEL}, valid_points=1),
        case("dead_engine", {"http_500_after": FIRST_LEVEL + 1}, valid_points=1),
        case("slow_death", {"slower_by": 2.5}, {"die_at": "load", "after_requests": FIRST_LEVEL}),
        case("slower_for_ever", {"slower_by": 3.0}),
        case("error_in_200", {"garbage_at": "load", "garbage": "error_in_200"}),
    ),
    (Verdict.INFRA, Phase.LOAD): (
        case("disk_full", {"die_at": "load", "log_text": DISK_FULL}, says="No space left"),
    ),
    (Verdict.MEASUREMENT_INVALID, Phase.LOAD): (
        case("no_usage", {"no_usage": True}, says="usage"),
        case("connections_break", {"reset_connection_every": 2}),
    ),
    (Verdict.CRASH_UNDER_LOAD, Phase.QUALITY): (
        case("death", {"die_at": "quality", "exit_code": -9}, says="signal 9", **MEASURED),
        case(
            "oom_then_exit_0",
            {"die_at": "quality", "log_text": OOM, "exit_code": 0},
            says="out of memory",
            **MEASURED,
        ),
        case("hang", {"hang_at": "load", "after_requests": BOTH_LEVELS}, **MEASURED),
    ),
    (Verdict.INFRA, Phase.QUALITY): (
        case(
            "disk_full",
            {"die_at": "quality", "log_text": DISK_FULL},
            says="No space left",
            **MEASURED,
        ),
    ),
    (Verdict.QUALITY_FAIL, Phase.QUALITY): (
        case("nan", {"nan_scores": True}, says="not numbers", **MEASURED),
    ),
    (Verdict.MEASUREMENT_INVALID, Phase.QUALITY): (
        case("cannot_score", {"garbage_at": "quality", "garbage": "broken_json"}, **MEASURED),
        case("hangs_when_scoring", {"hang_at": "quality"}, **MEASURED),
    ),
    (Verdict.OK, Phase.STOP): (
        case("nothing_wrong", **MEASURED),
        case("slow_start", {"slow_start_s": 2.0}, **MEASURED),
        case("dies_at_stop", {"die_at": "stop", "exit_code": -11}, **MEASURED),
        case("hangs_at_stop", {"hang_at": "stop"}, **MEASURED),
    ),
}
"""Cells that a single launch ends in."""

OTHERWISE: dict[Cell, str] = {
    (Verdict.INFEASIBLE_CONFIG, Phase.PLAN): "test_study: arithmetic refuses it",
    (Verdict.CAPACITY, Phase.PLAN): "test_study: a bound learnt from an earlier launch",
    (Verdict.CRASH_UNDER_LOAD, Phase.PLAN): "test_study: a bound learnt from an earlier launch",
    (Verdict.INFEASIBLE_CONFIG, Phase.QUANTIZE): "test_checkpoints: the tool refuses",
    (Verdict.CAPACITY, Phase.QUANTIZE): "test_checkpoints: the tool runs out of memory",
    (Verdict.INFRA, Phase.QUANTIZE): "test_checkpoints: the tool has no environment, or no time",
    (Verdict.UNKNOWN, Phase.QUANTIZE): "test_checkpoints: a text of the tool that no rule knows",
    (Verdict.UNKNOWN, Phase.WARMUP): "test_ours: a bug of ours",
    (Verdict.UNKNOWN, Phase.LOAD): "test_ours: a bug of ours",
    (Verdict.UNKNOWN, Phase.QUALITY): "test_ours: a bug of ours",
    (Verdict.INFRA, Phase.STOP): "test_ours: the halt beside the trial's own verdict",
}
"""Cells that no fault of a server's can reach, and the tests that reach them."""


def _cells(verdicts: Iterable[Verdict], phases: Iterable[Phase], why: str) -> dict[Cell, str]:
    return {(verdict, phase): why for verdict in verdicts for phase in phases}


_STARTED = (Phase.WARMUP, Phase.LOAD, Phase.QUALITY)

CANNOT: dict[Cell, str] = {
    **_cells(
        [
            Verdict.CRASH_UNDER_LOAD,
            Verdict.QUALITY_FAIL,
            Verdict.MEASUREMENT_INVALID,
            Verdict.STARTUP_TIMEOUT,
        ],
        [Phase.QUANTIZE],
        "no server has been started yet: there is nothing to crash, to measure or to wait for",
    ),
    **_cells(
        set(Verdict) - {v for v in Verdict if v.is_config_fault} | {Verdict.QUALITY_FAIL},
        [Phase.PLAN],
        "nothing runs yet: a plan is launched, or refused by arithmetic or a learnt bound",
    ),
    **_cells([Verdict.OK], set(Phase) - {Phase.STOP}, "only what came to its end is OK"),
    **_cells(
        [Verdict.CRASH_UNDER_LOAD, Verdict.MEASUREMENT_INVALID],
        [Phase.START],
        "nothing was asked of the server yet",
    ),
    **_cells(
        [Verdict.QUALITY_FAIL],
        [Phase.START, Phase.WARMUP, Phase.LOAD],
        "the output is judged in phase quality",
    ),
    **_cells([Verdict.CAPACITY], _STARTED, "it had started: running out is a crash under load"),
    **_cells(
        [Verdict.INFEASIBLE_CONFIG],
        [Phase.WARMUP, Phase.QUALITY],
        "it had started: a refusal from here on is a crash under load",
    ),
    **_cells([Verdict.STARTUP_TIMEOUT], [Phase.LOAD, Phase.QUALITY], "it was ready in time"),
    **_cells(
        set(Verdict) - {Verdict.OK, Verdict.INFRA},
        [Phase.STOP],
        "what was measured keeps its verdict, and the study halts",
    ),
}
