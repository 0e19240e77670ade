"""How many launches, and how much time, a search needs; against random, a grid and other samplers.

    python -m benchmarks.search_efficiency --quick
    python -m benchmarks.search_efficiency --results FILE [--seeds 30] [--study DIR] [--shared DIR]

A run that is stopped goes on from `--results`. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.efficiency import show
from benchmarks.efficiency.policies import OTHER_GPU, OURS, POLICIES, RANDOM, Policy
from benchmarks.efficiency.problem_set import (
    Source,
    measured_sources,
    silicon_sources,
    simulated_sources,
    study_sources,
)
from benchmarks.efficiency.runs import jobs, run_all
from benchmarks.efficiency.study import FRACTIONS, FRONTIER, SLO

QUICK_PROBLEMS = ("qwen3_8b-h200-chat", "llama3_70b-h200-chat")
QUICK_POLICIES = (OURS, OTHER_GPU, RANDOM)
QUICK_SEEDS, QUICK_MOST = 5, 100
SEEDS, MOST = 30, 400


def main(argv: Sequence[str] | None = None) -> int:
    args = _arguments(argv)
    # One thread a process: the studies run side by side.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sources, notes = _sources(args)
    for note in notes:
        print(note)
    if not sources:
        print("no problem of that name; benchmarks/tables/ holds those there are", file=sys.stderr)
        return 2
    kinds = (FRONTIER,) if args.quick else (FRONTIER, SLO)
    wanted = jobs(sources, _policies(args), args.seeds, args.most, kinds)
    records = run_all(
        wanted, args.results, args.workers, lambda text: print(text, file=sys.stderr, flush=True)
    )
    print(show.summary(records))
    for kind in kinds:
        for fraction in FRACTIONS:
            print(f"\n{show.by_problem(records, kind, fraction)}")
    lost = show.losses(records)
    print(f"\nLost to random by more than noise: {len(lost)}")
    for line in lost:
        print(f"- {line}")
    print(f"\n{show.headline(records)}")
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 problems, 5 seeds, 3 policies")
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--most", type=int, default=None, help="launches of a study at most")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=None, help="where studies are kept")
    parser.add_argument("--problem", action="append", default=[], help="words of its name")
    parser.add_argument("--policy", action="append", default=[], help="words of its name")
    parser.add_argument("--study", type=Path, action="append", default=[], help="made exhaustively")
    parser.add_argument("--shared", type=Path, default=_shared())
    args = parser.parse_args(argv)
    args.seeds = args.seeds or (QUICK_SEEDS if args.quick else SEEDS)
    args.most = args.most or (QUICK_MOST if args.quick else MOST)
    return args


def _shared() -> Path | None:
    named = os.environ.get("SWEEPER_SHARED")
    return Path(named) if named else None


def _sources(args: argparse.Namespace) -> tuple[list[Source], list[str]]:
    found = simulated_sources()
    if args.quick:
        return [source for source in found if source.name in QUICK_PROBLEMS], []
    silicon, notes = silicon_sources(args.shared)
    found += [*measured_sources(), *study_sources(args.study), *silicon]
    words = args.problem
    return [one for one in found if not words or any(word in one.name for word in words)], notes


def _policies(args: argparse.Namespace) -> list[Policy]:
    chosen = QUICK_POLICIES if args.quick else POLICIES
    words = args.policy
    return [one for one in chosen if not words or any(word in one.name for word in words)]


if __name__ == "__main__":
    sys.exit(main())
