"""What launches of a study put in the place of arithmetic. Pure.

Beside the cache, deployments of one kind hold the same; only larger batch limits add to it. So what
one launch left for its cache says what another of its kind will have:

    beside(launch) = share * device - cache
    beside(other) >= beside(launch)   if no batch limit of the other is smaller
    beside(other) <= beside(launch)   if none is larger

The device is taken as described on both sides, so that an error of its size counts only for the
difference between the two shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sweeper.estimate.facts import Context
from sweeper.estimate.memory_budget import Budget, memory_share
from sweeper.estimate.memory_cache import LARGEST_BLOCK_TOKENS, is_plain, sequence_length
from sweeper.estimate.memory_launch import Calibration, Launch, kind_of
from sweeper.estimate.memory_part import BESIDE, DRAFT, RUNTIME, SEQUENCE, WEIGHTS, Part
from sweeper.estimate.memory_sizes import exactly
from sweeper.models.facts import ModelFacts

NOISE_GIB = 0.1
NOISE_SHARE = 0.05
"""Two starts of one deployment differ by less than the larger of the two; the share is of what
stands beside the weights, which are the same each time."""
ROUNDING_GIB = 0.01
REQUEST_NOISE = 0.02

LATEST = 12
"""Launches of a kind that are looked at."""

LIMITS = ("max_num_batched_tokens", "max_num_seqs")

Predict = Callable[[Launch], float]
"""Expected memory beside the cache of a launch's deployment, by arithmetic alone."""


@dataclass(frozen=True)
class Beside:
    """Everything but the cache, from launches of one kind; None where none of them bounds it."""

    least_gib: float | None
    expected_gib: float
    most_gib: float | None


def with_weights(context: Context, calibration: Calibration, parts: list[Part]) -> list[Part]:
    """Weights as loaded where the same ones were, and all least sizes as far as they hold."""
    kind = kind_of(context.parameters, context.weights)
    loaded = [each.model_gib for each in calibration.of_kind(kind) if each.model_gib is not None]
    if not loaded:
        return [
            part.scaled(calibration.weights_scale) if part.name == WEIGHTS else part
            for part in parts
        ]
    noise = ROUNDING_GIB + 0.005 * max(loaded)
    found = Part(WEIGHTS, min(loaded) - noise, loaded[-1], max(loaded) + noise, measured=True)
    # A draft is loaded with its target and counted with it.
    return [found, *(part for part in parts if part.name not in {WEIGHTS, DRAFT})]


def with_sequence(
    context: Context, model: ModelFacts, calibration: Calibration, part: Part
) -> Part:
    """KV cache of one sequence as an engine counted it."""
    kind = kind_of(context.parameters, context.weights)
    told = [each for each in calibration.of_kind(kind) if each.request_gib and each.request_tokens]
    if not told:
        return part.scaled(calibration.cache_scale)
    length = sequence_length(context, model)
    least, most = part.least_gib * calibration.cache_scale, part.most_gib
    expected = part.expected_gib
    for each in told:
        gib, tokens = each.request_gib or 0.0, each.request_tokens or 1
        by = length.expected / tokens
        low, high = gib * (1 - REQUEST_NOISE), gib * (1 + REQUEST_NOISE) + ROUNDING_GIB
        if is_plain(model):
            least, expected = low * length.least / tokens, gib * by
            most = high * (length.expected + LARGEST_BLOCK_TOKENS) / tokens
        elif length.least >= tokens:
            least, expected = max(least, low), max(expected, gib)
        elif length.expected <= tokens:
            expected, most = min(expected, gib), high if most is None else min(most, high)
    expected = max(expected, least)
    return Part(
        SEQUENCE, least, expected, None if most is None else max(most, expected), measured=True
    )


def with_beside(
    context: Context, calibration: Calibration, budget: Budget, parts: list[Part], predict: Predict
) -> tuple[list[Part], Budget]:
    """Weights, and all that stands beside them and the cache in one part, where launches tell.

    Returns:
        The parts without that of the sequence, and the budget that goes with them.
    """
    kind = kind_of(context.parameters, context.weights)
    launches = [each for each in calibration.of_kind(kind) if each.cache_gib is not None]
    launches = launches[-LATEST:]
    if not launches or budget.cache_gib is not None or budget.is_open:
        return parts, budget
    weights = next(part for part in parts if part.name == WEIGHTS)
    found = _beside(context, launches, budget, parts, predict)
    least = sum(part.least_gib for part in parts)
    most = [part.most_gib for part in parts]
    bound = None if None in most else sum(each or 0.0 for each in most)
    low = found.least_gib if found.least_gib is not None else min(least, found.expected_gib)
    high = found.most_gib if found.most_gib is not None else bound
    high = None if high is None else max(high, found.expected_gib)
    # One figure that is taken off on both sides: the sum of the two parts is what was measured.
    held = min(weights.expected_gib, low)
    rest = Part(
        BESIDE,
        low - held,
        found.expected_gib - held,
        None if high is None else high - held,
        measured=True,
    )
    same = replace(weights, least_gib=held, expected_gib=held, most_gib=held)
    return [same, rest], replace(budget, gib=exactly(budget.share * budget.device_gib))


def with_surplus(context: Context, calibration: Calibration, parts: list[Part]) -> list[Part]:
    """The runtime as launches of other kinds found it, within its bounds."""
    surplus = calibration.surplus_gib.get((context.tp, context.pp), 0.0)
    return [_moved(part, surplus) if part.name == RUNTIME and surplus else part for part in parts]


def _moved(part: Part, by_gib: float) -> Part:
    expected = max(part.least_gib, part.expected_gib + by_gib)
    return replace(
        part, expected_gib=expected if part.most_gib is None else min(expected, part.most_gib)
    )


def _beside(
    context: Context,
    launches: Sequence[Launch],
    budget: Budget,
    parts: Sequence[Part],
    predict: Predict,
) -> Beside:
    seen = [_Seen.of(context, launch, budget) for launch in launches]
    below = [each for each in seen if each.compared(context) <= 0]
    above = [each for each in seen if each.compared(context) >= 0]
    # A larger deployment that held less shows that the smaller one's figure was noise.
    least = [min(o.low for o in seen if o.holds_more_than(each)) for each in below]
    most = [max(o.high for o in seen if each.holds_more_than(o)) for each in above]
    predicted_gib = sum(part.expected_gib for part in parts)
    weights_gib = next(part.expected_gib for part in parts if part.name == WEIGHTS)
    near = next((s for s in reversed(seen) if s in below and s in above), seen[-1])
    expected = near.beside_gib + predicted_gib - predict(near.launch)
    low = max(least) - _noise(max(least) - weights_gib) if least else None
    high = min(most) + _noise(min(most) - weights_gib) if most else None
    expected = max(expected, 0.0 if low is None else low)
    return Beside(low, expected if high is None else min(expected, high), high)


def _noise(gib: float) -> float:
    return max(NOISE_GIB, NOISE_SHARE * abs(gib))


INCOMPARABLE = float("nan")


@dataclass(frozen=True)
class _Seen:
    """A launch's figure, and its bounds for another memory share."""

    launch: Launch
    beside_gib: float
    low: float
    high: float

    @classmethod
    def of(cls, context: Context, launch: Launch, budget: Budget) -> _Seen:
        share = launch.value("gpu_memory_utilization")
        share = memory_share(context_like(context, launch)) if share is None else share
        beside = share * budget.device_gib - (launch.cache_gib or 0.0)
        error = (budget.gib.most - budget.gib.least) / budget.share
        return cls(
            launch,
            beside,
            beside - max(0.0, share - budget.share) * error,
            beside + max(0.0, budget.share - share) * error,
        )

    def compared(self, context: Context) -> float:
        """-1 if no limit of the launch is larger, 1 if none is smaller, 0 if all are equal."""
        return _order([self._against(context, name) for name in self._names()])

    def holds_more_than(self, other: _Seen) -> bool:
        """Whether no limit of the other launch is larger."""
        ours, theirs = self.launch, other.launch
        pairs = [
            (theirs.value(name), ours.value(name))
            for name in self._names()
            if name in ours.parameters or name in theirs.parameters
        ]
        return _order(pairs) <= 0

    def _names(self) -> tuple[str, ...]:
        # Without chunks the default batch is as long as the longest sequence.
        unchunked = self.launch.parameters.get("enable_chunked_prefill") is False
        return (*LIMITS, "max_model_len") if unchunked else LIMITS

    def _against(self, context: Context, name: str) -> tuple[float | None, float | None]:
        """(the launch's value, the deployment's); equal where both leave it to the engine."""
        asked = context.parameters.get(name)
        if asked is None:
            return (None, None) if name not in self.launch.parameters else (0.0, None)
        is_number = isinstance(asked, int | float) and not isinstance(asked, bool)
        return self.launch.value(name), float(asked) if is_number else None


def _order(pairs: Sequence[tuple[float | None, float | None]]) -> float:
    """-1 if the first of each pair is at most the second, 1 the other way, NaN for neither."""
    if any((one is None) != (other is None) for one, other in pairs):
        return INCOMPARABLE
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    smaller, larger = any(a < b for a, b in known), any(a > b for a, b in known)
    if smaller and larger:
        return INCOMPARABLE
    return -1.0 if smaller else 1.0 if larger else 0.0


def context_like(context: Context, launch: Launch) -> Context:
    """The surroundings of a study with a launch's deployment in it."""
    return replace(context, parameters=launch.parameters, weights=launch.weights)
