"""What of a space a prediction can tell apart. Pure, but for the predictions handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sweeper.engine.modelling import Foreseen
from sweeper.estimate.simulator.ask import MAX_DRAFT_TOKENS
from sweeper.estimate.simulator.modelled import why_not
from sweeper.space.model import CATEGORICAL, Parameter, Scalar, Space
from sweeper.verdicts import Diagnosis

Try = Callable[[Mapping[str, Any]], Diagnosis | None]
"""A deployment → why it has no prediction, None if it has one."""

PRECISIONS = ("quantization", "kv_cache_dtype")
"""Parameters whose values need timed operators, which depend on the GPU."""

_LACKING = frozenset({"unmodelled", "simulated_gap"})
"""Rules that blame the simulator; what the deployment itself is to blame for is a trial's end."""


def within(
    space: Space, try_out: Try, *, repeats_prompts: bool, acceptance_known: bool
) -> Foreseen:
    """The space without what no prediction takes into account.

    Args:
        space: what its user wants searched.
        try_out: one quick prediction with everything else at its default.
        repeats_prompts, acceptance_known: see `why_not`.

    Returns:
        The rest; parameters that were taken out are at the engine's default everywhere.
    """
    reasons = {
        name: reason
        for name in (*space.names, *space.fixed)
        if (
            reason := why_not(
                name, repeats_prompts=repeats_prompts, acceptance_known=acceptance_known
            )
        )
    }
    _add_children(space, reasons)
    gone = set(reasons)
    lost = {
        (parameter.name, value): cause
        for parameter in space.parameters
        if parameter.name not in gone and parameter.kind == CATEGORICAL
        for value in parameter.choices
        if (cause := _lacking(parameter, value, try_out)) is not None
    }
    left = [_without(p, lost) for p in space.parameters if p.name not in gone]
    # One value alone is no choice.
    kept = tuple(p for p in left if p.kind != CATEGORICAL or len(p.choices) > 1 or p.required)
    names = {parameter.name for parameter in kept}
    return Foreseen(
        replace(
            space,
            parameters=kept,
            fixed={k: v for k, v in space.fixed.items() if k not in reasons},
            seeds=_seeds(space, names, lost),
        ),
        tuple(_notes(reasons, lost)),
    )


def _add_children(space: Space, reasons: dict[str, str]) -> None:
    """Add what exists only under something that is gone. Parents stand before their children."""
    for parameter in space.parameters:
        for parent in parameter.when:
            if parent in reasons:
                reasons.setdefault(parameter.name, f"it exists only under {parent}")


def _lacking(parameter: Parameter, value: Scalar, try_out: Try) -> str | None:
    """Why one value cannot be predicted, None if it can or is the default."""
    if parameter.is_default(value):
        return None
    if parameter.name == "num_speculative_tokens":
        more = isinstance(value, int) and value > MAX_DRAFT_TOKENS
        return f"at most {MAX_DRAFT_TOKENS} are simulated" if more else None
    if parameter.name not in {*PRECISIONS, "speculative"}:
        return None
    found = try_out({parameter.name: value})
    if found is None or found.learnt.get("rule") not in _LACKING:
        return None
    return found.cause


def _without(parameter: Parameter, lost: Mapping[tuple[str, Scalar], str]) -> Parameter:
    if parameter.kind != CATEGORICAL:
        return parameter
    left = tuple(value for value in parameter.choices if (parameter.name, value) not in lost)
    return replace(parameter, choices=left)


def _seeds(
    space: Space, names: set[str], lost: Mapping[tuple[str, Scalar], str]
) -> tuple[dict[str, Scalar], ...]:
    """Seeds as far as they can be predicted, each once; one that asks for a lost value goes."""
    seeds: list[dict[str, Scalar]] = []
    for seed in space.seeds:
        if any((name, value) in lost for name, value in seed.items()):
            continue
        left = {name: value for name, value in seed.items() if name in names}
        if left and left not in seeds:
            seeds.append(left)
    return tuple(seeds)


def _notes(reasons: Mapping[str, str], lost: Mapping[tuple[str, Scalar], str]) -> list[str]:
    notes = []
    if reasons:
        told = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
        notes.append(f"not simulated, so left at the engine's default: {told}")
    notes += [f"{name}={value} is left out: {cause}" for (name, value), cause in lost.items()]
    return notes
