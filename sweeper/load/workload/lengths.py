"""Lengths of prompts and outputs: fixed or drawn, and the longest there can be.

=========  =======================================================================================
fixed      always the mean
uniform    evenly between mean x (1 - spread) and mean x (1 + spread)
normal     with a standard deviation of mean x spread
lognormal  the same mean and standard deviation, with the long tail that real traffic has:
           sigma^2 = ln(1 + spread^2), mu = ln(mean) - sigma^2 / 2
=========  =======================================================================================

What lies outside the shortest and the longest length is drawn again. That alone would move the
mean, by 8 % for a lognormal of spread 1 cut at four means; so the distribution is moved until the
mean between its two ends is the one asked for, as near as the ends allow. A draw is one step, by
the inverse of the distribution between its ends, and takes the same time whatever they are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from statistics import NormalDist

from sweeper.config.schema import WorkloadConfig
from sweeper.config.workload_checks import length_fields, longest_by_config, longest_length

SHORTEST_INPUT = 1
SHORTEST_OUTPUT = 2
"""Time per output token needs two."""

_LONGEST = {
    "file": "sweeper.load.workload.file:longest",
    "standard": "sweeper.load.workload.standard:longest",
    "trace": "sweeper.load.workload.trace:longest",
}


def longest(cfg: WorkloadConfig) -> tuple[int, int]:
    """(input, output) tokens of the longest request a workload can send.

    Prompts that are text can only be guessed at before a tokenizer has seen them. They are
    guessed low (a word is at least a token), so that nothing is refused which would fit.

    Raises:
        ConfigError: a file that cannot be read.
    """
    known = longest_by_config(cfg)
    if known is not None:
        return known
    module, _, function = _LONGEST[cfg.kind].partition(":")
    found: tuple[int, int] = getattr(import_module(module), function)(cfg)
    return found


@dataclass(frozen=True)
class Lengths:
    """Where the lengths of one side come from.

    Attributes:
        kind: see above.
        mean: in tokens.
        spread: over the mean.
        least, most: what is drawn lies between them, both included.
    """

    kind: str
    mean: int
    spread: float
    least: int
    most: int

    def draw(self, rng: random.Random) -> int:
        """One length."""
        if self.kind == "fixed" or self.mean * self.spread < _NO_SPREAD_TOKENS:
            return self.mean
        if self.kind == "uniform":
            lowest = math.ceil(self.mean * (1 - self.spread))
            low = max(lowest, self.least, 2 * self.mean - self.most)
            return rng.randint(low, 2 * self.mean - low)
        drawn = self._curve.draw(rng)
        return min(max(round(drawn), self.least), self.most)

    @cached_property
    def _curve(self) -> _Curve:
        """The distribution, moved until its mean is kept. Bisection: the mean grows with it."""
        low, high = -_FARTHEST_MOVE, _FARTHEST_MOVE
        for _ in range(_BISECTIONS):
            moved = (low + high) / 2
            if self._moved_by(moved).mean() < self.mean:
                low = moved
            else:
                high = moved
        return self._moved_by((low + high) / 2)

    def _moved_by(self, deviations: float) -> _Curve:
        least, most = self.least - 0.5, self.most + 0.5
        if self.kind == "normal":
            sigma = self.mean * self.spread
            return _Curve(NormalDist(self.mean + deviations * sigma, sigma), least, most)
        sigma = math.sqrt(math.log1p(self.spread**2))
        mu = math.log(self.mean) - sigma**2 / 2 + deviations * sigma
        return _Curve(NormalDist(mu, sigma), math.log(least), math.log(most), of_logs=True)


@dataclass(frozen=True)
class _Curve:
    """A normal distribution between two ends, of the lengths or of their logarithms."""

    normal: NormalDist
    low: float
    high: float
    of_logs: bool = False

    def draw(self, rng: random.Random) -> float:
        from_share, to_share = self.normal.cdf(self.low), self.normal.cdf(self.high)
        share = from_share + rng.random() * (to_share - from_share)
        drawn = self.normal.inv_cdf(share) if 0 < share < 1 else self.normal.mean
        return math.exp(drawn) if self.of_logs else drawn

    def mean(self) -> float:
        """Mean between the ends, by the closed forms for truncated normals and lognormals.

        See N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions, vol. 1,
        chapters 13 and 14.
        """
        mu, sigma = self.normal.mean, self.normal.stdev
        a, b = (self.low - mu) / sigma, (self.high - mu) / sigma
        mass = _UNIT.cdf(b) - _UNIT.cdf(a)
        if mass < _HARDLY_ANY:  # all of it lies beyond one end
            end = self.low if mu < self.low else self.high
            return math.exp(end) if self.of_logs else end
        if self.of_logs:
            inside = _UNIT.cdf(b - sigma) - _UNIT.cdf(a - sigma)
            return math.exp(mu + sigma**2 / 2) * inside / mass
        return mu + sigma * (_UNIT.pdf(a) - _UNIT.pdf(b)) / mass


_UNIT = NormalDist()
_NO_SPREAD_TOKENS = 0.1
"""Below it whole numbers are all the mean."""

_HARDLY_ANY = 1e-12
_FARTHEST_MOVE = 6.0
"""In standard deviations."""

_BISECTIONS = 50


class LengthSource:
    """(input, output) lengths of the requests of a workload.

    Args:
        cfg: the workload.
        seed: of all draws.
        shortest_input: shortest prompt; above 1 if part of it is given.
    """

    def __init__(
        self, cfg: WorkloadConfig, seed: int, shortest_input: int = SHORTEST_INPUT
    ) -> None:
        self._seed = seed
        self._input = _lengths(cfg, "input", shortest_input)
        self._output = _lengths(cfg, "output", SHORTEST_OUTPUT)
        self.conditions: dict[str, object] = {
            "input_tokens": cfg.input_tokens,
            "output_tokens": cfg.output_tokens,
            "length_distribution": cfg.length_distribution,
        }
        if cfg.length_distribution != "fixed":
            self.conditions |= {
                "input_spread": cfg.input_spread,
                "output_spread": cfg.output_spread,
                "input_tokens_max": self._input.most,
                "output_tokens_max": self._output.most,
            }

    def pairs(self, *name: str | int) -> Iterator[tuple[int, int]]:
        """Endless (input, output) lengths, the same for the same name."""
        rng = random.Random(f"{self._seed}:lengths:{name!r}")
        while True:
            yield self._input.draw(rng), self._output.draw(rng)


def _lengths(cfg: WorkloadConfig, side: str, least: int) -> Lengths:
    mean, spread, _ = length_fields(cfg, side)
    return Lengths(cfg.length_distribution, mean, spread, least, longest_length(cfg, side))
