"""Journals of failed launches, for tests of what they teach."""

from __future__ import annotations

from typing import Any

from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome

EFFECTIVE = {
    "gpu_memory_utilization": 0.9,
    "max_model_len": 32768,
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "data_parallel_size": 1,
}
"""What a running server tells of the defaults."""


def baseline(**effective: Any) -> TrialOutcome:
    """The defaults, which worked and told what is in effect."""
    return outcome(0, manifest={"effective_args": {**EFFECTIVE, **effective}})


def failed(
    number: int,
    deployment: dict[str, Any],
    rule: str,
    verdict: Verdict = Verdict.CAPACITY,
    **learnt: Any,
) -> TrialOutcome:
    """A launch that a rule knew the end of."""
    return outcome(number, deployment=deployment, verdict=verdict, learnt={"rule": rule, **learnt})
