"""A small study whose launches are a formula: a conditional space with a corner that fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from sweeper.config.schema import (
    LoadConfig,
    ObjectiveConfig,
    SamplerConfig,
    SloConfig,
    SpaceConfig,
)
from sweeper.search.candidates import Candidate, Candidates
from sweeper.search.objective import Objective
from sweeper.search.policy.chooser import Guide
from sweeper.search.proposals import Proposals
from sweeper.space.canonical import baseline, canonical, deployment_hash
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome, point

LEVELS = (1, 8, 64)
SPACE = parse_space(
    SpaceConfig(
        name="toy",
        parameters={
            "quantization": {"choices": ["none", "fp8_per_tensor"]},
            "max_num_seqs": {"choices": [4, 16, 64], "default": 16},
            "max_num_batched_tokens": {"choices": [512, 2048, 8192], "default": 2048},
            "speculative": {"choices": ["none", "ngram"]},
            "num_speculative_tokens": {
                "choices": [2, 4],
                "default": 2,
                "when": {"speculative": ["ngram"]},
            },
        },
    )
)
SIZE = 2 * 3 * 3 * 3
BEST_DEPLOYMENT: dict[str, Any] = {
    "max_num_batched_tokens": 8192,
    "max_num_seqs": 64,
    "num_speculative_tokens": 2,
    "quantization": "fp8_per_tensor",
    "speculative": "ngram",
}


def fails(deployment: Mapping[str, Any]) -> bool:
    """Memory: the largest batches without quantization."""
    raw = {**baseline(SPACE), **deployment}
    big = raw["max_num_batched_tokens"] == 8192 or raw["max_num_seqs"] == 64
    return raw["quantization"] == "none" and big and raw["max_num_batched_tokens"] > 512


def measured(deployment: Mapping[str, Any], number: int) -> TrialOutcome:
    """How a launch ends. Best: fp8, 64 sequences, 8192 tokens, 2 tokens guessed."""
    digest = deployment_hash(deployment)
    if fails(deployment):
        made = outcome(number, deployment=dict(deployment), verdict=Verdict.CAPACITY, points=[])
    else:
        raw = {**baseline(SPACE), **deployment}
        guessed = raw["num_speculative_tokens"] if raw["speculative"] == "ngram" else 0
        speed = 1.4 if raw["quantization"] != "none" else 1.0
        speed *= {0: 1.0, 2: 1.25, 4: 1.05}[guessed]
        speed *= (raw["max_num_batched_tokens"] / 512) ** 0.06
        points = []
        for level in LEVELS:
            running = min(level, raw["max_num_seqs"])
            throughput = 50 * speed * running**0.8
            points.append(point(level, throughput=throughput, e2e_p95_ms=level * 1e5 / throughput))
        made = outcome(number, deployment=dict(deployment), points=points)
    made.deployment_hash = digest
    made.kind = "baseline" if number == 0 else "search"
    return made


def worth(deployment: Mapping[str, Any]) -> float:
    """Throughput at the highest level; nothing for what fails."""
    made = measured(deployment, 1)
    return made.points[-1].metrics["output_tokens_per_s"] if made.points else -math.inf


def objective(kind: str = "frontier", with_quality: bool = False) -> Objective:
    made = Objective(
        ObjectiveConfig(kind=kind), SloConfig(), LoadConfig(concurrency=list(LEVELS)), with_quality
    )
    made.anchor(measured(canonical(SPACE, baseline(SPACE)), 0))
    return made


class Study:
    """Runs a sampler, from the beginning or on from a journal.

    Args:
        path: of Optuna's file.
        sampler: which.
        journal: outcomes of an earlier run.
        launch: how a launch ends.
    """

    def __init__(
        self,
        path: Path,
        sampler: str,
        journal: list[TrialOutcome] | None = None,
        launch: Callable[[Mapping[str, Any], int], TrialOutcome] = measured,
        guide: Guide | None = None,
    ) -> None:
        self.journal = list(journal or [])
        self.heard: list[str] = []
        self._launch = launch
        self._objective = objective()
        self._proposals = Proposals(
            path / "optuna.journal",
            SPACE,
            SamplerConfig(kind=sampler),
            self._objective,
            self.journal,
        )
        self._candidates = Candidates(
            SPACE,
            SPACE,
            self._proposals,
            lambda _: [],
            lambda: {one.deployment_hash: one for one in self.journal},
            guide=guide,
            tell=self.heard.append,
        )

    def run(self, launches: int) -> list[TrialOutcome]:
        """Until so many launches are journalled, or nothing is left."""
        for candidate in islice(self._each(), max(0, launches - len(self.journal))):
            assert candidate.proposal is not None
            number = len(self.journal)
            self._proposals.assign(candidate.proposal, number)
            ended = self._launch(candidate.deployment, number)
            self.journal.append(ended)
            self._proposals.tell(candidate.proposal, ended)
        return self.journal

    def _each(self) -> Iterator[Candidate]:
        return self._candidates.each()
