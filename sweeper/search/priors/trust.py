"""How far a prior is followed: as far as its ranking agreed with what was measured. Pure.

    agreement a   over all pairs of trials, the sign of the predicted difference times the measured
                  difference, over the sum of the measured ones' sizes: +1 all pairs the right way
                  round, 0 chance, -1 all the wrong way
    weight        max(0, (N w0 + n (a - 1/sqrt(n))) / (N + n)); 0 at once if a <= 0 from three on

This is a rank correlation in which a pair counts by how far its trials lie apart. The plain ones
(Spearman, Kendall) fail here: a search measures mostly what is nearly the best, and among
deployments within a per cent of each other the order is noise, however good a prior is. Spearman's
is reported.

1/sqrt(n) is one standard error of a correlation under chance, so a weight has to be earned.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

TRUST = {"simulator": 0.8, "studies": 0.7, "roofline": 0.5, "published": 0.5}
"""Weight of each kind of prior before anything was measured, in the order of what they know."""
OWN_TRIALS = 4.0
"""N: trials that the weight before any measurement counts for."""
LEAST_TRIALS = 3
"""Fewer cannot condemn a prior altogether."""


def agreement(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Rank agreement weighted by measured differences, -1 to 1.

    Returns:
        None if nothing differs, or if there are fewer than two trials.
    """
    score = total = 0.0
    for i, (own_guess, own) in enumerate(zip(predicted, measured, strict=True)):
        for guess, value in zip(predicted[:i], measured[:i], strict=True):
            apart = own - value
            total += abs(apart)
            score += apart * ((own_guess > guess) - (own_guess < guess))
    return score / total if total > 0 else None


def weight(start: float, predicted: Sequence[float], measured: Sequence[float]) -> float:
    """How far to follow a prior, 0 to 1.

    Args:
        start: weight before anything was measured.
        predicted: worth of each trial as predicted, shape (n,).
        measured: its worth as measured, shape (n,).
    """
    found, n = agreement(predicted, measured), len(measured)
    if found is None:
        return start
    if n >= LEAST_TRIALS and found <= 0:
        return 0.0
    earned = found - 1.0 / math.sqrt(n)
    return max(0.0, (OWN_TRIALS * start + n * earned) / (OWN_TRIALS + n))


def spearman(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None with fewer than three, or if one side is all the same."""
    if len(measured) < 3 or len(set(predicted)) < 2 or len(set(measured)) < 2:
        return None
    return statistics.correlation(_ranks(predicted), _ranks(measured))


def _ranks(values: Sequence[float]) -> list[float]:
    """Rank of each, the mean of their ranks for equals."""
    ordered = sorted(values)
    return [(bisect_left(ordered, one) + bisect_right(ordered, one) + 1) / 2 for one in values]
