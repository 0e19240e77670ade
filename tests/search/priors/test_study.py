"""A whole study that is led by priors, on launches that are made up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from sweeper.search.priors.guide import MANIFEST
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.plan import TrialPlan
from tests.factories import point
from tests.search.test_loop import Bench, bench

__all__ = ["bench"]  # the fixture

SPACE = """
name: batching
parameters:
  max_num_seqs: {choices: [1, 2, 4, 8, 16, 32], default: 8}
  tensor_parallel_size: {choices: [1, 2], default: 1}
  kv_cache_dtype: {choices: [auto, fp8]}
seeds:
  - {kv_cache_dtype: fp8}
"""
SETTINGS = (
    "prior=roofline", "prior.seeds=2", "hardware.device_count=2", "load.concurrency=[1,32]",
    "sampler=random", "budget.launches=5",
)  # fmt: skip


def speed(plan: TrialPlan) -> dict[str, Any]:
    sequences = float(plan.deployment.get("max_num_seqs", 8))
    devices = float(plan.deployment.get("tensor_parallel_size", 1))
    fast = math.sqrt(sequences) / devices
    return {"points": [point(c, throughput=c * fast, e2e_p95_ms=99.0 / fast) for c in (1, 32)]}


def told(journal: list[TrialOutcome]) -> list[tuple[str, dict[str, Any]]]:
    return [(one.kind, one.deployment) for one in journal]


def test_priors_seed_after_the_spaces_own_seeds_and_stand_in_every_manifest(
    bench: Callable[..., Bench],
) -> None:
    study = bench(speed, *SETTINGS, space=SPACE)
    study.run()
    kinds = [one.kind for one in study.journal]
    assert kinds[:3] == ["baseline", "seed", "seed"]
    assert study.journal[1].deployment == {"kv_cache_dtype": "fp8"}
    assert study.journal[2].deployment not in ({}, {"kv_cache_dtype": "fp8"})
    assert all("roofline" in one.manifest[MANIFEST] for one in study.journal)
    assert any(text.startswith("prior roofline: ") for text in study.heard)


@pytest.mark.parametrize("launches", [1, 2, 3])
def test_an_interrupted_study_is_led_on_as_it_would_have_been(
    bench: Callable[..., Bench], launches: int, tmp_path: Any
) -> None:
    whole = bench(speed, *SETTINGS, space=SPACE)
    whole.run()
    expected = told(whole.journal)
    whole.paths.trials_jsonl.unlink()
    whole.setup.cfg.budget.launches = launches
    whole.run()
    whole.setup.cfg.budget.launches = 5
    whole.run()
    assert told(whole.journal) == expected


def test_without_priors_nothing_is_predicted(bench: Callable[..., Bench]) -> None:
    study = bench(speed, *SETTINGS, "prior=none", space=SPACE)
    study.run()
    assert not any(MANIFEST in one.manifest for one in study.journal)
