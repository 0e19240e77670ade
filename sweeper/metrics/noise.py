"""How much two launches of one deployment differ, and which differences are therefore none. Pure.

A launch is slow or fast as a whole, so that the intervals inside one launch cannot tell how far the
next one will be off. Only repeats tell. Noise is taken to be proportional: everything here is done
on natural logarithms, where the standard deviation of a small noise is its coefficient of
variation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

CONFIDENCE = 0.95
WITHOUT_ERROR = 10**9
"""Launches of a figure that is taken to be known exactly."""

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Spread:
    """Launch-to-launch spread of one metric.

    Attributes:
        sd_log: standard deviation of its natural logarithm.
        dof: degrees of freedom behind it: launches less deployments.
    """

    sd_log: float
    dof: int

    @property
    def cv(self) -> float:
        """Coefficient of variation of a log-normal of that spread; 0.01 is one per cent."""
        return math.sqrt(math.expm1(self.sd_log**2))


@dataclass(frozen=True)
class Noise:
    """The noise of a machine, by metric. A metric without repeats has none that is known.

    Attributes:
        spreads: metric → its spread.
    """

    spreads: Mapping[str, Spread] = field(default_factory=dict)

    @classmethod
    def from_repeats(cls, groups: Iterable[Sequence[Figures]]) -> Noise:
        """Pool the spread within groups.

        Args:
            groups: each the figures of several launches of one deployment at one load level;
                metric → value. Groups of one say nothing. What is not positive is left out.
        """
        squares: dict[str, float] = {}
        dofs: dict[str, int] = {}
        for group in groups:
            for metric in {name for figures in group for name in figures}:
                logs = [math.log(f[metric]) for f in group if f.get(metric, 0.0) > 0]
                if len(logs) < 2:
                    continue
                mean = math.fsum(logs) / len(logs)
                squares[metric] = squares.get(metric, 0.0) + math.fsum(
                    (value - mean) ** 2 for value in logs
                )
                dofs[metric] = dofs.get(metric, 0) + len(logs) - 1
        return cls(
            {name: Spread(math.sqrt(squares[name] / dofs[name]), dofs[name]) for name in dofs}
        )

    def cv(self, metric: str) -> float | None:
        """Coefficient of variation between launches; None if it is not known."""
        spread = self.spreads.get(metric)
        return None if spread is None else spread.cv

    def margin(
        self, metric: str, launches: tuple[int, int] = (1, 1), confidence: float = CONFIDENCE
    ) -> float | None:
        """Log ratio within which two figures are a tie; None if the noise is not known.

        Args:
            metric: which.
            launches: how many launches each of the two figures is the mean of.
            confidence: share of ties that lie within it, to both sides together.
        """
        from scipy.special import stdtrit

        spread = self.spreads.get(metric)
        if spread is None:
            return None
        error = spread.sd_log * math.sqrt(1 / launches[0] + 1 / launches[1])
        return float(stdtrit(spread.dof, 0.5 + confidence / 2)) * error

    def is_tie(
        self,
        a: Figures,
        b: Figures,
        metrics: Iterable[str] | None = None,
        launches: tuple[int, int] = (1, 1),
    ) -> bool:
        """Whether two launches (or means of several) can be told apart in none of the metrics.

        Args:
            a, b: metric → value.
            metrics: those that count; None takes all that both have and whose noise is known.
            launches: as for `margin`.

        Returns:
            False also where a metric that counts is missing, or its noise is not known: nothing
            shows that they are equal.
        """
        wanted = [name for name in a if name in b and name in self.spreads]
        if metrics is not None:
            wanted = list(metrics)
        return bool(wanted) and all(self._ties(a, b, name, launches) for name in wanted)

    def _ties(self, a: Figures, b: Figures, metric: str, launches: tuple[int, int]) -> bool:
        ours, theirs = a.get(metric, 0.0), b.get(metric, 0.0)
        margin = self.margin(metric, launches)
        if margin is None or ours <= 0 or theirs <= 0:
            return False
        return abs(math.log(ours / theirs)) <= margin
