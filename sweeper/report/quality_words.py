"""What became of the output, in numbers and words; whichever quality ranks is told. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sweeper.quality.floor import Change
from sweeper.trial.outcome import QualityScore

NOT_MEASURED, NO_CHANGE, BELOW_FLOOR = "not measured", "no change", "below the floor"
PER_CENT, NATS = "%", "nats a token"
"""Units of a change; other task metrics have none."""


@dataclass(frozen=True)
class QualityChange:
    """A quality against the reference's own.

    Attributes:
        name: the quality in words.
        shown: the score as people write it.
        unit: of the change, see `unit_of`.
        change: of the score, more is better; None where the reference has no such score.
        loglik: change of the reference text's log-likelihood, nats a token.
    """

    name: str
    shown: str
    unit: str
    change: Change | None
    loglik: Change


def quality_change(
    score: QualityScore | None, reference: QualityScore | None
) -> QualityChange | None:
    """A score against the baseline's; None if there is no score.

    The change is the paired one where it was measured, else the difference of the two scores.
    """
    if score is None:
        return None
    loglik = Change(score.loglik_change_nats, score.loglik_change_se_nats, score.clusters)
    change = change_between(reference, score)
    return QualityChange(score.name, score.shown, unit_of(score), change, loglik)


def unit_of(score: QualityScore) -> str:
    """In which unit a change of the quality that ranks is told."""
    if score.ranked_by == "perplexity":
        return NATS
    return PER_CENT if 0.0 <= score.score <= 1.0 else ""


def change_between(a: QualityScore | None, b: QualityScore) -> Change | None:
    """Quality of `b` minus that of the reference `a`; None if they are not of one kind."""
    if b.against_reference is not None:
        return b.against_reference
    if a is None or a.ranked_by != b.ranked_by:
        return None
    if a is b:
        return Change(0.0, 0.0)
    return Change(b.score - a.score, hypot_se(a.score_se, b.score_se))


def hypot_se(a: float | None, b: float | None) -> float:
    """Standard error of a difference of independent figures; infinite if one is not known."""
    return math.inf if a is None or b is None else math.hypot(a, b)


def quality_text(quality: QualityChange | None) -> str:
    """``no change (-0.1 % ± 0.4 %)``, ``-0.8 % ± 0.5 %`` or ``not measured``; ± is 95 %."""
    if quality is None:
        return NOT_MEASURED
    if quality.change is None:
        return quality.shown
    if not quality.change.value and not quality.change.se:
        return NO_CHANGE
    text = change_text(quality.change, quality.unit)
    is_none = quality.change.is_none and math.isfinite(quality.change.reach)
    return f"{NO_CHANGE} ({text})" if is_none else text


def change_text(change: Change, unit: str) -> str:
    """``-0.8 % ± 0.5 %`` of a share, ``-0.012 ± 0.004 nats a token`` of a log-likelihood."""
    is_share = unit == PER_CENT
    factor, digits, of_each = (100, 1, " %") if is_share else (1, 3, "")
    value, reach = _signed(factor * change.value, digits), factor * change.reach
    known = f"{reach:.{digits}f}{of_each}" if math.isfinite(reach) else "unknown"
    return f"{value}{of_each} ± {known}" + (f" {unit}" if unit and not is_share else "")


def _signed(value: float, digits: int) -> str:
    """With its sign; what rounds to zero has none that could mislead."""
    text = f"{value:+.{digits}f}"
    return text.lstrip("+-") if not float(text) else text
