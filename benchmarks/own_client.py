"""One load level of this product's client in a process of its own, reported as one JSON line.

    python -m benchmarks.own_client --base-url http://127.0.0.1:8000 --model stub --requests 256

The same modules in the same order as a trial: bank, workload, `run_level`, `summarise`. A server
that asks for a key gets $OPENAI_API_KEY, as from the other clients.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweeper.config.schema import WorkloadConfig
from sweeper.load.address import ServerAddress
from sweeper.load.drive import DriveOptions, run_level
from sweeper.load.level import CLOSED, LoadLevel
from sweeper.load.prompts import tokenize_bank
from sweeper.load.records import LevelRun
from sweeper.load.workload.registry import create
from sweeper.metrics.summary import summarise


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Drive the level; figures under the names that the comparison reads."""
    server = ServerAddress(args.base_url, args.model, os.environ.get("OPENAI_API_KEY") or None)
    bank = tokenize_bank(server.base_url, server.model, server.api_key)
    work = WorkloadConfig(input_tokens=args.input_tokens, output_tokens=args.output_tokens)
    level = LoadLevel(CLOSED, args.requests, min(args.concurrency, args.requests))
    options = replace(DriveOptions(), warmup_requests_per_stream=args.warmup_rounds)
    started_s, cpu_s = time.perf_counter(), time.process_time()
    run = run_level(
        server, level, create(work, bank, args.seed), stream=f"seed-{args.seed}", options=options
    )
    level_s, level_cpu_s = time.perf_counter() - started_s, time.process_time() - cpu_s
    return _told(run) | {"level_wall_s": level_s, "level_cpu_s": level_cpu_s}


def _told(run: LevelRun) -> dict[str, Any]:
    started_s = time.perf_counter()
    summary = summarise([run], device_count=1)
    metrics = summary.metrics
    tokens = sum(record.output_tokens or 0 for record in run.records)
    return {
        "output_tokens_per_s": metrics.get("output_tokens_per_s"),
        "ttft_ms": metrics.get("ttft_mean_ms"),
        "tpot_ms": metrics.get("tpot_mean_ms"),
        "requests": summary.n,
        "valid": summary.valid,
        "reasons": summary.reasons,
        "whole_tokens_per_s": tokens / run.duration_s,
        "duration_s": run.duration_s,
        "overhead_s": run.overhead_s,
        "phase_cpu_s": run.client_cpu_s,
        "warm_up_requests": run.warm_up.requests,
        "loop_lag_p95_s": run.loop_lag_p95_s,
        "ended_early": run.ended_early,
        "summary_s": time.perf_counter() - started_s,
        "metrics": metrics,
    }


def main() -> None:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--input-tokens", type=int, default=64)
    parser.add_argument("--output-tokens", type=int, default=128)
    parser.add_argument("--warmup-rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="file for the JSON, else printed")
    args = parser.parse_args()
    text = json.dumps(measure(args))
    if args.out is None:
        print(text)
    else:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
