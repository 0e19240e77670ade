"""Which parameters of a deployment a diagnosis blames by name, for failures of single flags. Pure.

An engine speaks of flags (``--performance-mode``), a deployment of parameters
(``flag.performance_mode``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sweeper.search.bounds.bound import Limit, Relation

Blamed = Callable[[Mapping[str, Any], Mapping[str, Any]], list[tuple[Limit, ...]]]
"""(learnt, deployment) → for each bound its limits; nothing if the flag is not the deployment's."""

_BY_ITSELF = "Input should be "
"""How pydantic begins what it finds wrong with a value, whatever the others are."""

_PARTS = {
    "method": ("speculative",),
    "speculative_config": ("speculative", "num_speculative_tokens", "prompt_lookup_max"),
}
"""Flags that several parameters are put together in."""


def unknown_flags(
    learnt: Mapping[str, Any], deployment: Mapping[str, Any]
) -> list[tuple[Limit, ...]]:
    """One bound a flag: each alone is refused. Of a switch only the side that was used."""
    words = str(learnt.get("unrecognized_arguments", "")).replace("=", " ").split()
    named = [word for word in words if word.startswith("--")] or words[:1]
    found: list[tuple[Limit, ...]] = []
    for name in dict.fromkeys(name for word in named for name in _parameters(word, deployment)[:1]):
        value = deployment[name]
        is_switch = isinstance(value, bool)
        found.append(
            (Limit(name, Relation.SAME, value) if is_switch else Limit(name, Relation.IS_SET),)
        )
    return found


def refused_value(
    learnt: Mapping[str, Any], deployment: Mapping[str, Any]
) -> list[tuple[Limit, ...]]:
    """The value that was refused; others may be taken."""
    word = str(learnt.get("argument", "")).split("/")[0]
    names = _parameters(word, deployment)
    return [_as_they_are(names, deployment)] if names else []


def refused_fields(
    learnt: Mapping[str, Any], deployment: Mapping[str, Any]
) -> list[tuple[Limit, ...]]:
    """The value of each field that was refused by itself; what was derived from others is not."""
    fields, problems = learnt.get("fields"), learnt.get("problems")
    if not isinstance(fields, list) or not isinstance(problems, list):
        return []
    refused = [
        str(field)
        for field, problem in zip(fields, problems, strict=False)
        if str(problem).startswith(_BY_ITSELF)
    ]
    names = dict.fromkeys(name for field in refused for name in _parameters(field, deployment))
    return [_as_they_are([name], deployment) for name in names]


def without_effect(
    learnt: Mapping[str, Any], deployment: Mapping[str, Any]
) -> list[tuple[Limit, ...]]:
    """The values that were not followed, all of them together."""
    ignored = learnt.get("ineffective")
    flags = ignored if isinstance(ignored, Mapping) else {}
    names = [name for flag in flags for name in _parameters(str(flag), deployment)]
    return [_as_they_are(names, deployment)] if names else []


def _as_they_are(names: list[str], deployment: Mapping[str, Any]) -> tuple[Limit, ...]:
    return tuple(
        Limit(name, Relation.SAME, deployment[name]) for name in sorted(dict.fromkeys(names))
    )


def _parameters(flag: str, deployment: Mapping[str, Any]) -> list[str]:
    """Parameters of the deployment that a flag comes from."""
    plain = flag.lstrip("-").replace("-", "_")
    positive = plain.removeprefix("no_")
    candidates = (*_PARTS.get(plain, (plain,)), f"flag.{plain}", positive, f"flag.{positive}")
    return [name for name in candidates if name in deployment]
