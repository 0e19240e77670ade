"""How often a confirmation is right, on launches made up with a noise that is known.

    python -m benchmarks.confirmation --seeds 2000

A search measures a number of deployments once, and the defaults; the best of them are chosen as a
study chooses them (`sweeper.pareto.contest`), launched again in blocks, and judged as a study
judges them (`sweeper.pareto.confirmed`). Only the launches are made up: a true throughput times a
noise that is normal on the logarithm, and a drift that all launches of one block share.

Each line says how often the verdict was "better" for any deployment, how often "no significant
gain" for all, and how often all intervals held the truth.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from sweeper.config.schema import SelectConfig
from sweeper.pareto.confirmed import BETTER, NO_GAIN, Judgement, judge
from sweeper.pareto.contest import contest_of
from sweeper.pareto.select import rule_of

LEVEL = "concurrency 8"


@dataclass(frozen=True)
class Case:
    """A machine and a space.

    Attributes:
        name: in words.
        deployments: beside the defaults.
        gain: by which the first of them is truly better; all others are as good as the defaults.
        noise: standard deviation of a launch, on the logarithm.
        drift: of a block, likewise.
        repeats, entries: the design.
        entry_noise: of launches that are not the defaults'; None is `noise`.
    """

    name: str
    deployments: int = 40
    gain: float = 0.0
    noise: float = 0.1
    drift: float = 0.0
    repeats: int = 3
    entries: int = 2
    entry_noise: float | None = None


CASES = (
    Case("winner's curse: nothing better, noise 10 %"),
    Case("the same, blocks drift by 10 %", drift=0.1),
    Case("the same, noise 1 %", noise=0.01),
    Case("the same, one entry", entries=1),
    Case("the same, others three times as noisy as the defaults", noise=0.03, entry_noise=0.1),
    Case("5 % gain, noise 1 %", gain=0.05, noise=0.01),
    Case("the same, blocks drift by 1 %", gain=0.05, noise=0.01, drift=0.01),
    Case("the same, blocks drift by 5 %", gain=0.05, noise=0.01, drift=0.05),
    Case("the same, one entry", gain=0.05, noise=0.01, entries=1),
    Case("5 % gain, noise 2 %", gain=0.05, noise=0.02),
    Case("the same, 5 repeats", gain=0.05, noise=0.02, repeats=5),
    Case("the same, 8 repeats", gain=0.05, noise=0.02, repeats=8),
)


@dataclass(frozen=True)
class Judged:
    """What came of one made-up study.

    Attributes:
        found: the verdicts.
        is_true: whether every interval holds the truth.
        planted: whether the deployment that is truly better was found to be.
    """

    found: tuple[Judgement, ...]
    is_true: bool
    planted: bool

    @property
    def better(self) -> bool:
        """Whether anything was found to be better."""
        return any(one.verdict == BETTER for one in self.found)

    @property
    def no_gain(self) -> bool:
        """Whether nothing was."""
        return all(one.verdict == NO_GAIN for one in self.found)


def made_up(case: Case, seed: int) -> Judged:
    """One study: searched, confirmed, judged."""
    chance = np.random.default_rng(seed)
    truth = np.zeros(case.deployments + 1)
    truth[1] = np.log1p(case.gain)
    noises = np.full(len(truth), case.noise if case.entry_noise is None else case.entry_noise)
    noises[0] = case.noise
    searched = np.exp(truth + chance.normal(0.0, noises))
    rows = [_row(trial, float(value)) for trial, value in enumerate(searched)]
    rule = rule_of(SelectConfig())
    contest = contest_of(rows, rule, case.entries)
    if contest is None:
        return Judged((), True, False)
    members = [0, *(entry.trial for entry in contest.entries)]
    drift = chance.normal(0.0, case.drift, (case.repeats, 1))
    noise = chance.normal(0.0, noises[members], (case.repeats, len(members)))
    again = np.exp(truth[members] + drift + noise)
    for place, trial in enumerate(members):
        rows[trial] = _repeated(rows[trial], [float(value) for value in again[:, place]])
    found = judge(rows, rule)
    held = [
        one.low is not None and one.high is not None
        and one.low <= np.exp(truth[one.trial]) <= one.high
        for one in found
    ]  # fmt: skip
    planted = any(one.trial == 1 and one.verdict == BETTER for one in found)
    return Judged(found, all(held), planted)


def _row(trial: int, throughput: float) -> dict[str, Any]:
    """A deployment at one load, as `sweeper.pareto.points.row_dict` tells it."""
    return {
        "trial": trial,
        "kind": "baseline" if trial == 0 else "search",
        "deployment_hash": f"{trial:012x}",
        "deployment": {"max_num_seqs": trial} if trial else {},
        "level": LEVEL,
        "load_kind": "closed",
        "launches": 1,
        **_metrics(throughput),
    }


def _metrics(throughput: float) -> dict[str, float]:
    """In a closed loop latency follows from throughput."""
    return {"output_tokens_per_s_per_gpu": throughput, "e2e_p95_ms": 1000.0 / throughput}


def _repeated(row: dict[str, Any], values: list[float]) -> dict[str, Any]:
    repeats = [
        {"trial": 0, "block": block, "metrics": _metrics(value)}
        for block, value in enumerate(values, start=1)
    ]
    mean = float(np.exp(np.mean(np.log(values))))
    searched = _metrics(row["output_tokens_per_s_per_gpu"])
    new = {"launches": len(values), "repeats": repeats, "searched": searched}
    return {**row, **_metrics(mean), **new}


def main() -> int:
    """Print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2000)
    seeds = parser.parse_args().seeds
    print("| case | launches | better | no significant gain | planted found | intervals hold |")
    print("|---|---:|---:|---:|---:|---:|")
    for case in CASES:
        seen = [made_up(case, seed) for seed in range(seeds)]
        shares = [
            sum(one.better for one in seen) / seeds,
            sum(one.no_gain for one in seen) / seeds,
            sum(one.planted for one in seen) / seeds if case.gain else None,
            sum(one.is_true for one in seen) / seeds,
        ]
        told = " | ".join("-" if share is None else f"{share:.1%}" for share in shares)
        print(f"| {case.name} | {case.repeats * (case.entries + 1)} | {told} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
