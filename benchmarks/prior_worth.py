"""What a prior is worth: launches with and without one, on a table of every deployment.

    python -m benchmarks.prior_worth --truth simulated_qwen7b_h200.jsonl.gz \
        --prior simulated_qwen7b_h100.jsonl.gz [--seeds 30]

Both are tables that `engine=replay` reads, of the same deployments. The prior is taken as it is,
with noise, and shuffled: every deployment is then given another one's curve, which is knowledge of
nothing and must cost nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.efficiency.known import recorded
from benchmarks.efficiency.policies import Policy
from benchmarks.efficiency.priors import NOISY, SHUFFLED, TRUE
from benchmarks.efficiency.study import FRACTIONS, FRONTIER, run
from sweeper.config.schema import SloConfig
from sweeper.engine.replay.table import Table

POLICIES = (
    Policy("random", "random"),
    Policy("no prior", "auto"),
    Policy("prior as it is", "auto", TRUE),
    Policy("prior with noise", "auto", NOISY),
    Policy("prior shuffled", "auto", SHUFFLED),
)
MOST = 200


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", type=Path, required=True)
    parser.add_argument("--prior", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=30)
    args = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    known = recorded("truth", Table.load(args.truth), SloConfig())
    other = recorded("prior", Table.load(args.prior), SloConfig())
    shares = " ".join(f"{fraction:>14.0%}" for fraction in FRACTIONS)
    print(f"launches until a share of the best hypervolume, median (mean) of {args.seeds} seeds")
    print(f"{'':<18}{shares}")
    for policy in POLICIES:
        results = [
            run(known, policy, seed, FRONTIER, MOST, other=other) for seed in range(args.seeds)
        ]
        cells = []
        for fraction in FRACTIONS:
            # One that never came so far counts as one launch more than it had.
            found = [result.reached[fraction].launches or MOST + 1 for result in results]
            cells.append(f"{statistics.median(found):>6.1f} ({statistics.mean(found):.1f})")
        print(f"{policy.name:<18}" + " ".join(f"{cell:>14}" for cell in cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
