"""Ours and the two others behind one face: a command to start, a result to read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.foreign_clients import (
    GUIDELLM_VERSION,
    Job,
    Reported,
    find_guidellm,
    guidellm_command,
    guidellm_reported,
    vllm_bench_command,
    vllm_bench_reported,
)

OURS, VLLM_BENCH, GUIDELLM = "sweeper", "vllm bench serve", "guidellm"


@dataclass(frozen=True)
class Contestant:
    """A load client.

    Attributes:
        name: for tables.
        command: what to start for a job.
        reported: reads what it left behind.
        environment: beside our own.
    """

    name: str
    command: Callable[[Job], list[str]]
    reported: Callable[[Job], Reported]
    environment: dict[str, str]


def own_command(job: Job) -> list[str]:
    return [
        sys.executable, "-m", "benchmarks.own_client",
        "--base-url", job.base_url,
        "--model", job.model,
        "--concurrency", str(job.concurrency),
        "--requests", str(job.requests),
        "--input-tokens", str(job.input_tokens),
        "--output-tokens", str(job.output_tokens),
        "--warmup-rounds", str(-(-job.warmups // job.concurrency)),
        "--seed", str(job.seed),
        "--out", str(job.folder / "own.json"),
    ]  # fmt: skip


def own_reported(job: Job) -> Reported:
    told = json.loads((job.folder / "own.json").read_text())
    figures = ("overhead_s", "whole_tokens_per_s", "duration_s", "phase_cpu_s", "level_wall_s")
    details = {name: float(told[name]) for name in figures}
    details["loop_lag_p95_ms"] = 1e3 * float(told["loop_lag_p95_s"] or 0.0)
    return Reported(
        output_tokens_per_s=told["output_tokens_per_s"],
        ttft_ms=told["ttft_ms"],
        tpot_ms=told["tpot_ms"],
        requests=told["requests"],
        steady=True,
        details=details,
        doubts=tuple(told["reasons"]),
    )


def contestants(names: list[str], *, guidellm_workers: int = 1) -> list[Contestant]:
    """Those asked for.

    Args:
        names: of the table.
        guidellm_workers: processes guidellm sends from; of its own accord it starts ten, which get
            in each other's way where there is one core for them.

    Raises:
        RuntimeError: guidellm is asked for and has not been installed.
    """
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    found: dict[str, Contestant] = {
        OURS: Contestant(OURS, own_command, own_reported, {}),
        VLLM_BENCH: Contestant(VLLM_BENCH, vllm_bench_command, vllm_bench_reported, quiet),
    }
    if GUIDELLM in names:
        program = _guidellm()

        def command(job: Job) -> list[str]:
            return guidellm_command(job, program)

        workers = {"GUIDELLM__MAX_WORKER_PROCESSES": str(guidellm_workers)}
        found[GUIDELLM] = Contestant(GUIDELLM, command, guidellm_reported, quiet | workers)
    return [found[name] for name in names]


def _guidellm() -> Path:
    program = find_guidellm()
    if program is None:
        raise RuntimeError(
            f"guidellm {GUIDELLM_VERSION} is not there: "
            "python -m benchmarks.foreign_clients install-guidellm"
        )
    return program
