"""Outcomes of deployments that are recorded without a launch. Pure, but for the clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sweeper.search.bounds.bound import Bound
from sweeper.search.bounds.learn import LEARNT_BOUND
from sweeper.search.candidates import Candidate
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Diagnosis, Phase, Verdict


def refused(
    number: int, candidate: Candidate, conditions: Mapping[str, Any], study: str
) -> TrialOutcome | None:
    """The outcome of a candidate that needs no launch; None if nothing speaks against one.

    Args:
        number: of the trial.
        candidate: what was proposed.
        conditions: the study's part of the manifest.
        study: its name, for the command that takes a bound back.
    """
    if candidate.violations:
        found = _by_arithmetic(candidate)
    elif candidate.bound is not None:
        found = _by_bound(candidate.bound, study)
    else:
        return None
    return TrialOutcome(
        number=number,
        kind=candidate.kind,
        deployment=candidate.deployment,
        deployment_hash=candidate.deployment_hash,
        verdict=found.verdict,
        phase=found.phase,
        cause=found.cause,
        remedy=found.remedy,
        evidence=found.evidence,
        learnt=dict(found.learnt),
        launched=False,
        timings_s={"total": 0.0},
        manifest=dict(conditions),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        attempt=candidate.attempt,
    )


def _by_arithmetic(candidate: Candidate) -> Diagnosis:
    first = candidate.violations[0]
    return Diagnosis(
        Verdict.INFEASIBLE_CONFIG,
        Phase.PLAN,
        first.cause,
        first.remedy,
        "\n".join(f"{found.rule}: {found.cause}" for found in candidate.violations),
        {"rule": first.rule},
    )


def _by_bound(bound: Bound, study: str) -> Diagnosis:
    """As its teacher ended, so that the sampler is told the same of both."""
    return Diagnosis(
        Verdict(bound.verdict),
        Phase.PLAN,
        f"not launched: {bound.text}",
        f"{bound.remedy}; " * bool(bound.remedy)
        + f"to launch it all the same: python -m sweeper bounds study={study} drop={bound.id}",
        learnt={
            "rule": LEARNT_BOUND,
            "bound": bound.id,
            "taught_by_trial": bound.trial,
            "taught_by_rule": bound.rule,
        },
    )
