"""`sampler=staged`: one parameter after another, in the order that practitioners recommend.

    quantization ──► batching and memory ──► speculative decoding ──► parallelism ──► the rest
        each parameter: every value with the best so far; the best beyond noise is adopted
    then each adopted change is taken back once: what is no worse without it stays without it
    then, if the budget lasts, the model of `sampler=gp` goes on

Where it stands is read from the journal each time, by walking the same way through what is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sweeper.search.policy.chooser import Ground, Raw, hashes
from sweeper.search.policy.next_best import NextBest
from sweeper.search.policy.open import values_of
from sweeper.space.canonical import active, baseline, canonical, deployment_hash
from sweeper.space.catalogue import RECIPE_PREFIX
from sweeper.space.model import Parameter, Space
from sweeper.trial.outcome import TrialOutcome

STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("quantization", ("quantization", RECIPE_PREFIX, "dtype", "kv_cache_dtype")),
    (
        "batching and memory",
        (
            "max_num_seqs",
            "max_num_batched_tokens",
            "gpu_memory_utilization",
            "max_model_len",
            "block_size",
            "enable_chunked_prefill",
            "enable_prefix_caching",
        ),
    ),
    ("speculative decoding", ("speculative", "num_speculative_tokens", "prompt_lookup_max")),
    (
        "parallelism",
        ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
    ),
)
"""Name → its parameters in order, or the beginning of their names."""
REST = "the rest"
TAKING_BACK = "taking changes back"
NOISE_SHARE = 0.01
"""Differences up to this share of a value are taken for noise."""


class Staged:
    """Walks stage by stage.

    It climbs on the first objective; what breaks a promise or fails to run is never adopted.

    Args:
        ground: what the decision rests on.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._after = NextBest(ground)
        self._said: str | None = None

    def choose(self, outcomes: Sequence[TrialOutcome], trying: Mapping[str, Raw]) -> Raw | None:
        """See `Chooser`."""
        space, known = self._ground.space, hashes(outcomes, trying)
        for stage, raw in Climb(space, self._scores(outcomes)).questions():
            deployment = canonical(space, raw)
            digest = deployment_hash(deployment)
            if digest not in known and self._ground.open.is_fit(digest, deployment):
                self._say(f"stage: {stage}")
                return deployment
        self._say("all stages are done; the model of sampler=gp goes on")
        return self._after.choose(outcomes, trying)

    def _scores(self, outcomes: Sequence[TrialOutcome]) -> dict[str, float]:
        """Deployment hash → first objective, larger is better, of those that have one."""
        objective = self._ground.objective
        sign = 1.0 if objective.directions[0] == "maximize" else -1.0
        told = [(outcome.deployment_hash, objective.tell(outcome).values) for outcome in outcomes]
        return {digest: sign * values[0] for digest, values in told if values is not None}

    def _say(self, text: str) -> None:
        if text != self._said:
            self._ground.tell(text)
            self._said = text


class Climb:
    """The walk as far as scores are known; beyond, it asks on from the best so far.

    Args:
        space: what is searched.
        scores: deployment hash → score; larger is better.

    Attributes:
        best: coordinates of the best so far.
        adopted: parameters that it changed, oldest first.
    """

    def __init__(self, space: Space, scores: Mapping[str, float]) -> None:
        self._space = space
        self._scores = scores
        self.best: Raw = baseline(space)
        self.adopted: list[str] = []

    def questions(self) -> Iterator[tuple[str, Raw]]:
        """Stage and coordinates, in order. One that nobody answers counts as a no."""
        for stage, parameters in stages(self._space):
            for parameter in parameters:
                for raw in self._try_values(parameter):
                    yield stage, raw
        for name in list(self.adopted):
            for raw in self._take_back(name):
                yield TAKING_BACK, raw

    def _try_values(self, parameter: Parameter) -> Iterator[Raw]:
        start = found = self.best
        if parameter.name not in active(self._space, start):
            return  # its branch is closed
        for value in values_of(parameter):
            if value == start[parameter.name]:
                continue
            raw = {**start, parameter.name: value}
            yield raw
            if self._is_better(raw, start) and not self._is_better(found, raw, margin=0.0):
                found = raw
        if found is not start:
            self.best = found
            self.adopted.append(parameter.name)

    def _take_back(self, name: str) -> Iterator[Raw]:
        raw = {**self.best, name: self._space[name].default}
        if canonical(self._space, raw) == canonical(self._space, self.best):
            return  # its branch was closed by another
        yield raw
        if self._score(raw) is not None and not self._is_better(self.best, raw):
            self.best = raw
            self.adopted.remove(name)

    def _is_better(self, one: Raw, other: Raw, margin: float = NOISE_SHARE) -> bool:
        ours, theirs = self._score(one), self._score(other)
        if ours is None or theirs is None:
            return ours is not None
        return ours - theirs > margin * abs(theirs)

    def _score(self, raw: Raw) -> float | None:
        return self._scores.get(deployment_hash(canonical(self._space, raw)))


def stages(space: Space) -> list[tuple[str, list[Parameter]]]:
    """The stages that have parameters in this space, with them; what no stage names comes last."""
    left = list(space.parameters)
    found: list[tuple[str, list[Parameter]]] = []
    for stage, beginnings in STAGES:
        ranked = [
            (min(i for i, start in enumerate(beginnings) if one.name.startswith(start)), one)
            for one in left
            if one.name.startswith(beginnings)
        ]
        own = [one for _, one in sorted(ranked, key=lambda pair: pair[0])]
        left = [one for one in left if one not in own]
        found.append((stage, own))
    return [(stage, own) for stage, own in [*found, (REST, left)] if own]
