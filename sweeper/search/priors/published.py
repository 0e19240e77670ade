"""Published recipes as a prior: a few known-good deployments to try early. It predicts nothing.

Facts only, each with its source. What a space does not offer is left out of a recipe: a number
takes the nearest that is offered, a word must be there. A recipe of which nothing is left is
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeper.search.priors.prior import Deployment, Prediction, Prior, Say
from sweeper.search.priors.trust import TRUST
from sweeper.space.canonical import active
from sweeper.space.match import match
from sweeper.space.model import Parameter, Scalar, Space

if TYPE_CHECKING:
    from sweeper.search.setup import StudySetup

FAR_OFF = math.log(2.0)
"""A number that is offered must be within a factor of 2 of the one that is recommended."""


@dataclass(frozen=True)
class Recipe:
    """One recommendation.

    Attributes:
        engine: whose it is.
        kind: of hardware: cuda | cpu.
        least_capability: compute capability from which it holds; None for all.
        deployment: what it sets.
        source: where it is published.
    """

    engine: str
    kind: str
    least_capability: tuple[int, int] | None
    deployment: Mapping[str, Scalar]
    source: str


_TUNING = "https://docs.vllm.ai/en/stable/configuration/optimization/"
_HOPPER = "https://github.com/vllm-project/recipes/blob/main/Llama/Llama3.3-70B.md"
_GPT_OSS = "https://github.com/vllm-project/recipes/blob/main/OpenAI/GPT-OSS.md"

RECIPES = (
    # FP8 weights and cache, 8192 tokens a step and 512 sequences: most throughput on Hopper.
    Recipe(
        "vllm",
        "cuda",
        (8, 9),
        {
            "quantization": "fp8_per_tensor",
            "kv_cache_dtype": "fp8",
            "max_num_batched_tokens": 8192,
            "max_num_seqs": 512,
        },
        _HOPPER,
    ),
    # More than 8192 tokens a step for throughput, above all for small models on large GPUs.
    Recipe("vllm", "cuda", None, {"max_num_batched_tokens": 16384, "max_num_seqs": 512}, _TUNING),
    # Few sequences and more devices: latency of one user.
    Recipe(
        "vllm",
        "cuda",
        (8, 9),
        {
            "quantization": "fp8_per_tensor",
            "kv_cache_dtype": "fp8",
            "max_num_batched_tokens": 8192,
            "tensor_parallel_size": 2,
        },
        _HOPPER,
    ),
    # Small steps keep running outputs from waiting for prompts.
    Recipe("vllm", "cuda", None, {"max_num_batched_tokens": 2048}, _TUNING),
    # Mixtures of experts with 16-bit cache on Hopper: large steps, the default number of sequences.
    Recipe("vllm", "cuda", None, {"max_num_batched_tokens": 8192}, _GPT_OSS),
)


def make(setup: StudySetup, _: Say) -> Prior | str:
    """The recipes that hold for a study, or why there is none."""
    facts, machine = setup.engine_facts, setup.hardware
    engine = "vllm" if facts.name in {"vllm", "vllm_offline", "simulate"} else facts.name
    fitting = [
        recipe
        for recipe in RECIPES
        if (recipe.engine, recipe.kind) == (engine, machine.kind)
        and _capable(machine.compute_capability, recipe.least_capability)
    ]
    found = [raw for recipe in fitting if (raw := fitted(setup.space, recipe.deployment))]
    if not found:
        return f"no published recipe is known for {engine} on {machine.kind} that this space offers"
    return PublishedPrior(found)


def _capable(there: tuple[int, int] | None, least: tuple[int, int] | None) -> bool:
    return least is None or (there is not None and there >= least)


def fitted(space: Space, deployment: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """A recipe in the values of a space, as far as they are offered; empty if nothing is left."""
    found = {
        name: value
        for name, wanted in deployment.items()
        if name in space.names and (value := _offered(space[name], wanted)) is not None
    }
    present = active(space, found)
    return {
        name: value
        for name, value in found.items()
        if name in present and not space[name].is_default(value)
    }


def _offered(parameter: Parameter, wanted: Scalar) -> Scalar | None:
    """The value itself, or for a number the nearest there is."""
    own = match(parameter, wanted)
    if own is not None or isinstance(wanted, str | bool):
        return own
    numbers = [
        value
        for value in parameter.values or ()
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    ]
    best = min(numbers, key=lambda value: abs(math.log(value / wanted)), default=None)
    return best if best is not None and abs(math.log(best / wanted)) <= FAR_OFF else None


class PublishedPrior:
    """Recommended deployments.

    Args:
        recommended: partial raw coordinates, the best first.
    """

    kind = "published"
    trust = TRUST[kind]

    def __init__(self, recommended: Sequence[dict[str, Any]]) -> None:
        self._recommended = list(recommended)
        self.notes = ["seeds only; it predicts no figures"]

    def suggestions(self) -> list[dict[str, Any]]:
        return [dict(raw) for raw in self._recommended]

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        return [None for _ in deployments]
