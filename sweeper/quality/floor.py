"""What a change of quality means: standard errors, "no change", the floor. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

Z_95 = 1.96


def binomial_se(successes: int, trials: int) -> float:
    """Standard error of ``successes / trials``.

    Half a success and half a failure are added, because otherwise 100 % of ten tokens would be as
    certain as 100 % of ten thousand.
    """
    if trials < 1:
        raise ValueError("a share of nothing has no standard error")
    share = (successes + 0.5) / (trials + 1)
    return math.sqrt(share * (1.0 - share) / trials)


def clustered_se(groups: Sequence[Sequence[float]]) -> float:
    """Standard error of the mean over all values, which are alike within a group (a prompt).

    With one group, values count as independent.

    Source of the formula: R. Cameron and D. Miller, "A practitioner's guide to cluster-robust
    inference", Journal of Human Resources 2015, for a mean.
    """
    n = sum(map(len, groups))
    if n < 2:
        return 0.0
    mean = math.fsum(map(math.fsum, groups)) / n
    clusters = [group for group in groups if group]
    if len(clusters) == 1:
        clusters = [[value] for value in clusters[0]]
    m = len(clusters)
    squares = math.fsum(math.fsum(value - mean for value in c) ** 2 for c in clusters)
    return math.sqrt(squares * m / (m - 1)) / n


def is_no_change(change: float, se: float) -> bool:
    """True if `change` cannot be told from zero: it lies inside its 95 % interval around zero."""
    return abs(change) <= Z_95 * se


def settled(agreement: float, se: float, reference: float, reference_se: float) -> float:
    """An agreement for ranking: the reference's own where the two cannot be told apart.

    The reference, reading its own text back, does not reach 1 either (rounding differs between
    writing and reading), so a candidate is compared with that figure, not with 1.

    Args:
        agreement, se: the candidate's share and its standard error.
        reference, reference_se: the reference's own.
    """
    change = agreement - reference
    return reference if is_no_change(change, math.hypot(se, reference_se)) else agreement


def below_floor(change: float, se: float, max_drop: float) -> bool:
    """True if the output is worse by more than `max_drop`, beyond the error of measuring it.

    Args:
        change: candidate minus reference, same unit as `max_drop`; falls are negative.
        se: standard error of `change`.
        max_drop: fall that is still accepted, 0 or positive.
    """
    return change + Z_95 * se < -max_drop
