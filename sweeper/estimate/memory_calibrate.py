"""From what launches told to a calibrated model of memory. Pure.

A measured figure that lies below what was called the least, or a deployment that worked although it
was proven not to, contradicts the model. The bound that was wrong is widened for the whole study,
and the contradiction is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import FITS, MemoryVerdict, verdict_of
from sweeper.estimate.memory_cache import sequence_part
from sweeper.estimate.memory_launch import Calibration, Launch
from sweeper.estimate.memory_measured import ROUNDING_GIB, context_like
from sweeper.estimate.memory_part import DRAFT, WEIGHTS
from sweeper.estimate.memory_weights import weights_part

ContextOf = Callable[[Launch], Context]

WORRY_GIB = 1.0
"""Set aside when something failed that was said to fit, if the launch did not tell by how much."""


def calibrate(launches: Sequence[Launch], study: Context) -> Calibration:
    """What a study's launches say.

    Args:
        launches: in any order.
        study: model, hardware and engine of the study; its deployment does not matter.
    """
    if study.model is None or study.hardware is None:
        return Calibration()
    ordered = tuple(sorted(launches, key=lambda launch: launch.trial))
    found = _scaled(Calibration(ordered), study)
    found = replace(found, surplus_gib=_surplus(found, study))
    found = _less_certain(found, study)
    return _less_confident(found, study)


def _scaled(told: Calibration, study: Context) -> Calibration:
    """Factors on least sizes, 1 while nothing contradicts them."""
    weights_by, cache_by, notes = 1.0, 1.0, []
    for launch in told.launches:
        context = context_like(study, launch)
        assert context.model is not None
        if launch.model_gib is not None:
            least = weights_part(context, context.model).least_gib
            if launch.model_gib + ROUNDING_GIB < least * weights_by:
                weights_by = launch.model_gib / least
                notes.append(
                    f"memory: trial {launch.trial} loaded {launch.model_gib:.2f} GiB of weights, "
                    f"where {least:.2f} GiB were taken to be the least; least sizes of weights are "
                    f"lowered by {1 - weights_by:.0%} from now on"
                )
        if launch.request_gib is not None and launch.request_tokens:
            given = {**launch.parameters, "max_model_len": launch.request_tokens}
            least = sequence_part(replace(context, parameters=given), context.model, 0).least_gib
            if launch.request_gib + ROUNDING_GIB < least * cache_by:
                cache_by = launch.request_gib / least
                notes.append(
                    f"memory: in trial {launch.trial} a sequence of {launch.request_tokens:,} "
                    f"tokens needed {launch.request_gib:.2f} GiB of KV cache, where "
                    f"{least:.2f} GiB were taken to be the least; least sizes are lowered by "
                    f"{1 - cache_by:.0%} from now on"
                )
    return replace(told, weights_scale=weights_by, cache_scale=cache_by, notes=tuple(notes))


def _surplus(told: Calibration, study: Context) -> dict[tuple[int, int], float]:
    """What launches held beside weights and cache, less the best guess; the median."""
    found: dict[tuple[int, int], list[float]] = {}
    for launch in told.launches:
        judged = _judged(launch, study, Calibration())
        budget = judged.budget
        if launch.cache_gib is None or budget is None or budget.cache_gib is not None:
            continue
        if budget.is_open or not judged.has_cache:
            continue
        guessed = judged.needed_gib - judged.sequence.expected_gib
        if launch.model_gib is not None:  # drafts are loaded with their targets
            of_model = (part for part in judged.parts if part.name in {WEIGHTS, DRAFT})
            guessed += launch.model_gib - sum(part.expected_gib for part in of_model)
        context = context_like(study, launch)
        key = (context.tp, context.pp)
        found.setdefault(key, []).append(budget.gib.expected - launch.cache_gib - guessed)
    return {key: median(each) for key, each in found.items()}


def _less_certain(told: Calibration, study: Context) -> Calibration:
    """Proofs must exceed what they missed by where a deployment worked."""
    doubt, notes = 0.0, list(told.notes)
    for launch in told.launches:
        short = _judged(launch, study, told).missing_gib if launch.started else 0.0
        if short > doubt:
            doubt = short + ROUNDING_GIB
            notes.append(
                f"memory: trial {launch.trial} works, although {short:.2f} GiB were said to be "
                f"missing; from now on a proof must exceed {doubt:.2f} GiB"
            )
    return replace(told, doubt_gib=doubt, notes=tuple(notes))


def _less_confident(told: Calibration, study: Context) -> Calibration:
    """What was said to fit and failed for want of cache."""
    worry, notes = 0.0, list(told.notes)
    for launch in told.launches:
        if not launch.short:
            continue
        earlier = tuple(each for each in told.launches if each.trial < launch.trial)
        found = _judged(launch, study, replace(told, launches=earlier))
        if found.verdict != FITS:
            continue
        known = launch.cache_gib is not None and launch.request_gib is not None
        missing = (launch.request_gib or 0.0) - (launch.cache_gib or 0.0) if known else WORRY_GIB
        more = (found.margin_gib or 0.0) + missing
        if more > worry:
            worry = more
            notes.append(
                f"memory: trial {launch.trial} was said to fit and did not; from now on "
                f"{worry:.2f} GiB more must be left over to say so"
            )
    return replace(told, worry_gib=worry, notes=tuple(notes))


def _judged(launch: Launch, study: Context, told: Calibration) -> MemoryVerdict:
    context = context_like(study, launch)
    assert context.model is not None
    assert context.hardware is not None
    return verdict_of(context, context.model, context.hardware, told)
