"""Floors of quality: how far output may fall before a fast deployment loses. Pure.

Each is judged beyond the error of measuring it, and a verdict names floor, figure and error.
"""

from __future__ import annotations

from sweeper.config.schema import QualityConfig
from sweeper.quality.floor import Change
from sweeper.quality.written import broken
from sweeper.trial.outcome import QualityScore
from sweeper.verdicts import Diagnosis, Phase, Verdict

_MILDER = "choose a milder quantization or KV-cache precision, or raise {key} if this is acceptable"


def first_broken(quality: QualityScore, limits: QualityConfig) -> Diagnosis | None:
    """The first floor that an output falls through, None if it keeps them all."""
    for floor in (_loglik, _agreement, _tasks, _written):
        found = floor(quality, limits)
        if found is not None:
            return found
    return None


def _loglik(quality: QualityScore, limits: QualityConfig) -> Diagnosis | None:
    return _fallen(
        Change(quality.loglik_change_nats, quality.loglik_change_se_nats, quality.clusters),
        limits.max_loglik_drop_nats,
        what="log-likelihood of the reference text fell by",
        unit=" nats a token",
        key="quality.max_loglik_drop_nats",
        learnt="loglik_change_nats",
    )


def _agreement(quality: QualityScore, limits: QualityConfig) -> Diagnosis | None:
    if quality.agreement_change is None or quality.agreement_change_se is None:
        return None
    return _fallen(
        Change(quality.agreement_change, quality.agreement_change_se, quality.clusters),
        limits.max_agreement_drop,
        what="agreement with the reference fell by",
        unit="",
        key="quality.max_agreement_drop",
        learnt="agreement_change",
    )


def _tasks(quality: QualityScore, limits: QualityConfig) -> Diagnosis | None:
    change = quality.tasks_change
    if change is None:
        return None
    return _fallen(
        change,
        limits.max_task_drop,
        what=f"{quality.tasks_name} fell by",
        unit="",
        key="quality.max_task_drop",
        learnt="task_change",
    )


def _written(quality: QualityScore, limits: QualityConfig) -> Diagnosis | None:
    fault = broken(quality.written)
    if fault is None:
        return None
    drafting = str(quality.written.get("drafting", ""))
    which = f" with {drafting}" if drafting else ""
    return Diagnosis(
        Verdict.QUALITY_FAIL,
        Phase.QUALITY,
        f"its own output{which} is broken: {fault}",
        "leave this combination out: it reads the reference well enough or not, but what it "
        "writes is of no use; quality.written_tokens=0 does not look",
        learnt={"rule": "broken_writing"},
    )


def _fallen(
    change: Change, max_drop: float | None, *, what: str, unit: str, key: str, learnt: str
) -> Diagnosis | None:
    if max_drop is None or not change.is_below(max_drop):
        return None
    return Diagnosis(
        Verdict.QUALITY_FAIL,
        Phase.QUALITY,
        f"{what} {-change.value:.3f} ± {change.reach:.3f}{unit}, more than {max_drop:g} beyond "
        f"its error ({key})",
        _MILDER.format(key=key),
        learnt={learnt: change.value},
    )
