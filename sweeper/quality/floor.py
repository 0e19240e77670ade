"""What a change of quality means: standard errors, "no change", the floor. Pure.

Tokens of one prompt resemble one another, so a prompt counts as one draw (a cluster), and both
sides read the same tokens, so their difference is taken token by token (a pair). With few clusters
a standard error is itself uncertain, and a 95 % interval reaches further than 1.96 of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

Z_95 = 1.96


@dataclass(frozen=True)
class Change:
    """A mean difference from the reference, and how well it is known.

    Attributes:
        value: candidate minus reference; falls are negative.
        se: its standard error, clustered.
        clusters: how many independent groups it rests on; None if that is not known, or does not
            matter because there are very many.
    """

    value: float
    se: float
    clusters: int | None = None

    @property
    def reach(self) -> float:
        """Half the width of its 95 % interval; infinite where one value alone was measured."""
        quantile = quantile_95(self.clusters)
        return quantile * self.se if math.isfinite(quantile) else math.inf

    @property
    def is_none(self) -> bool:
        """True if it cannot be told from zero."""
        return abs(self.value) <= self.reach

    def is_below(self, max_drop: float) -> bool:
        """True if it is a fall of more than `max_drop`, beyond the error of measuring it.

        Args:
            max_drop: fall that is still accepted, in the unit of the change, 0 or positive.
        """
        return self.value + self.reach < -max_drop


@cache
def quantile_95(clusters: int | None) -> float:
    """Standard errors that a two-sided 95 % interval reaches on each side.

    Student's t with one degree of freedom less than there are clusters: the usual correction for
    few clusters (R. Cameron and D. Miller, "A practitioner's guide to cluster-robust inference",
    Journal of Human Resources 2015, section VI). `Z_95` where their number is not known; with
    fewer than two nothing is known, and the interval has no end.
    """
    if clusters is None:
        return Z_95
    if clusters < 2:
        return math.inf
    from scipy.special import stdtrit

    return float(stdtrit(clusters - 1, 0.975))


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
    clusters = _clusters(groups)
    m = len(clusters)
    squares = math.fsum(math.fsum(value - mean for value in c) ** 2 for c in clusters)
    return math.sqrt(squares * m / (m - 1)) / n


def mean_change(groups: Sequence[Sequence[float]]) -> Change:
    """Mean of paired differences, one group a prompt. One value alone has no error: 0 clusters.

    Raises:
        ValueError: there is no value.
    """
    n = sum(map(len, groups))
    if n < 1:
        raise ValueError("a mean of nothing is no change")
    mean = math.fsum(map(math.fsum, groups)) / n
    return Change(mean, clustered_se(groups), len(_clusters(groups)))


def share_change(hits: Sequence[Sequence[bool]], own: Sequence[Sequence[bool]]) -> Change:
    """Share of hits minus the reference's share over the same tokens.

    Its interval is the wider of two: the clustered one of the paired differences, and that of two
    paired shares of independent tokens. The second, with half a token added to each of the four
    ways in which a pair can fall, keeps a handful of differences, or none at all, from looking
    certain; its tokens are many, so that it reaches `Z_95` errors.

    Args:
        hits: the candidate's, one group a prompt.
        own: the reference's own, the same tokens.

    Source of the second: A. Agresti and Y. Min, "Simple improved confidence intervals for
    comparing matched proportions", Statistics in Medicine 2005.
    """
    pairs = [list(zip(h, o, strict=True)) for h, o in zip(hits, own, strict=True)]
    change = mean_change([[float(ours) - float(theirs) for ours, theirs in p] for p in pairs])
    n = sum(map(len, pairs)) + 2.0
    gained = sum(ours and not theirs for p in pairs for ours, theirs in p)
    lost = sum(theirs and not ours for p in pairs for ours, theirs in p)
    independent_se = math.sqrt(gained + lost + 1 - (gained - lost) ** 2 / n) / n
    quantile = quantile_95(change.clusters)
    if math.isfinite(quantile):
        independent_se *= Z_95 / quantile
    return Change(change.value, max(change.se, independent_se), change.clusters)


def is_no_change(change: float, se: float) -> bool:
    """True if `change` cannot be told from zero: it lies inside its 95 % interval around zero."""
    return Change(change, se).is_none


def settled(agreement: float, se: float, reference: float, reference_se: float) -> float:
    """An agreement for ranking where only two shares are known, not their paired difference.

    The reference's own where the two cannot be told apart. The reference, reading its own text
    back, does not reach 1 either (rounding differs between writing and reading), so a candidate is
    compared with that figure, not with 1.

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
    return Change(change, se).is_below(max_drop)


def _clusters(groups: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """Groups that have values; one group alone falls into its values."""
    filled = [group for group in groups if group]
    return [[value] for value in filled[0]] if len(filled) == 1 else filled
