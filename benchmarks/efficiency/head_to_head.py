"""Head to head with `aisimulate recommend`, on its own simulator and with its own goal.

    python -m benchmarks.efficiency.head_to_head --results FILE [--seeds 5] [--trials 16 64 256]

`recommend` runs as its users run it, in an environment of its own (`uv` makes it); what it
recommends is then looked up in the same table of predictions that our search reads. The table
(`benchmarks/tables/head_to_head.jsonl.gz`) is made once with `--make DIR`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.efficiency import head_problem as problem
from benchmarks.efficiency.asks import key_of
from benchmarks.efficiency.known import Known, recorded
from benchmarks.efficiency.make_tables import TABLES, predicted, write_lines
from benchmarks.efficiency.policies import OURS, RANDOM, Policy
from benchmarks.efficiency.problems import SIMULATOR
from benchmarks.efficiency.study import best_of
from sweeper.config.schema import SloConfig
from sweeper.engine.replay.table import Table
from sweeper.space.canonical import canonical

TABLE = TABLES / "head_to_head.jsonl.gz"
TRIALS = (16, 64, 256)
THEIRS = "aisimulate recommend"
COMMAND = ("uvx", "--python", "3.11", "--from", SIMULATOR, "aisimulate", "recommend")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make", type=Path, default=None, help="make the table, answers kept here")
    parser.add_argument("--pause-while", type=Path, default=None, help="wait while it exists")
    parser.add_argument("--results", type=Path, default=None, help="where runs are kept")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, nargs="+", default=list(TRIALS))
    parser.add_argument("--ours-only", action="store_true")
    args = parser.parse_args(argv)
    if args.make is not None:
        make(args.make, args.pause_while)
        return 0
    known = recorded("head_to_head", Table.load(TABLE), SloConfig(), problem.OBJECTIVE)
    print(f"best of all {len(known.table.rows)} deployments: {best(known):,.0f} tokens/s per GPU")
    print("\n| evaluations | who | tokens/s per GPU, median [all seeds] | share of the best |")
    print("|---:|---|---|---:|")
    for trials in args.trials:
        for policy in (OURS, RANDOM):
            values = [ours(known, policy, seed, trials) for seed in range(args.seeds)]
            print(_line(trials, policy.name, values, best(known)), flush=True)
        if not args.ours_only:
            values = [theirs(known, seed, trials, args.results) for seed in range(args.seeds)]
            print(_line(trials, THEIRS, values, best(known)), flush=True)
    return 0


def make(work: Path, pause_while: Path | None) -> None:
    """Predict every deployment of the problem."""
    pairs = problem.deployments()
    asks = {key_of(ask): ask for _, values in pairs for ask in (problem.ask_of(values),)}
    questions = [{**ask, "shares": list(problem.SHARES)} for ask in asks.values()]
    answers = predicted("head_to_head", questions, work, pause_while)
    config = problem.space_config()
    head = {
        "space": {"name": config.name, "parameters": config.parameters},
        "source": "head to head",
        "versions": {"simulator": SIMULATOR},
    }
    lines: list[dict[str, Any]] = [{"table": head}]
    for deployment, values in pairs:
        said = answers[key_of(problem.ask_of(values))][str(values["gpu_memory_utilization"])]
        lines.append({"deployment": deployment, **_row(said)})
    write_lines(lines, TABLE)


def _row(said: Mapping[str, Any]) -> dict[str, Any]:
    if "metrics" not in said:
        return {"verdict": "CAPACITY", "cause": said["refused"], "levels": []}
    return {
        "verdict": "OK",
        "levels": [{"concurrency": problem.STREAMS, "metrics": said["metrics"]}],
    }


def best(known: Known) -> float:
    """Highest throughput a GPU of the whole table."""
    return max(level.metrics[problem.METRIC] for row in known.table.rows for level in row.levels)


def ours(known: Known, policy: Policy, seed: int, trials: int) -> float:
    """What our search has found after so many evaluations, the baseline counted."""
    found = best_of(known, policy, seed, "metrics", trials)
    return max(point.metrics[problem.METRIC] for outcome in found for point in outcome.valid_points)


def theirs(known: Known, seed: int, trials: int, results: Path | None) -> float:
    """What `recommend` puts first after so many trials; kept, as a run takes minutes."""
    for entry in _stored(results):
        if (entry["trials"], entry["seed"]) == (trials, seed):
            return float(entry["tokens_per_s_per_gpu"])
    started = time.monotonic()
    deployment, said = _recommended(trials, seed)
    row = known.table.lookup(deployment)
    if row is None:
        raise KeyError(f"recommended {dict(deployment)}, which the table does not have")
    value = row.levels[0].metrics[problem.METRIC]
    if results is not None:
        entry = {
            "trials": trials,
            "seed": seed,
            "tokens_per_s_per_gpu": value,
            "said": said,
            "deployment": deployment,
            "wall_s": round(time.monotonic() - started, 1),
        }
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
    return value


def _recommended(trials: int, seed: int) -> tuple[dict[str, Any], float]:
    """Its first recommendation as our deployment, and the score that it gave it."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(yaml.safe_dump(problem.recommend_config(trials, seed)))
        out = Path(folder) / "out"
        command = [*COMMAND, "--config", str(config), "--output-dir", str(out), "--format", "json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        first = min(json.loads(done.stdout), key=lambda one: int(one["rank"]))
        return _deployment(yaml.safe_load(Path(first["config_path"]).read_text())), first["score"]


def _deployment(config: Mapping[str, Any]) -> dict[str, Any]:
    worker = config["engine"]["workers"]["aggregated"]
    parallel, scheduler = worker["parallelism"], worker["scheduler"]
    raw = {
        "data_parallel_size": parallel["replicas"],
        "tensor_parallel_size": parallel["tensor"],
        "pipeline_parallel_size": parallel["pipeline"],
        "max_num_seqs": scheduler["max_sequences"],
        "max_num_batched_tokens": scheduler["max_batched_tokens"],
        "gpu_memory_utilization": worker["kv_cache"]["capacity"]["memory_fraction"],
    }
    return canonical(problem.space(), raw)


def _stored(results: Path | None) -> list[dict[str, Any]]:
    if results is None or not results.is_file():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def _line(trials: int, who: str, values: Sequence[float], top: float) -> str:
    told = f"{median(values):,.0f} [{min(values):,.0f}, {max(values):,.0f}]"
    return f"| {trials} | {who} | {told} | {median(values) / top:.1%} |"


if __name__ == "__main__":
    sys.exit(main())
