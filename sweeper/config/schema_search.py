"""The typed shape of what steers a search: prior knowledge, early stops, confirmation."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class PriorConfig:
    """What is known before the first launch. It seeds and orders, and replaces no measurement."""

    name: str = "none"
    kinds: list[str] = field(default_factory=list)
    """roofline | simulator | studies | published; several are weighed against each other"""
    seeds: int = 5
    """Most deployments that they add to the space's own seeds. Fewer are launched where a prior
    proves wrong, or has nothing more to add."""
    order: bool = True
    """Whether they also order what comes after the seeds, as far as they proved right."""
    studies: list[str] = field(default_factory=list)
    """Folders or journals (`trials.jsonl`) of finished studies of the same model family or GPU."""
    hardware: str | None = None
    """simulator: option of `hardware=` that is simulated in place of the study's own."""
    predictions: int = 800
    """simulator: load levels that it may predict before the first launch, about 70 ms each. In a
    larger space it predicts a sample, and the rest is inferred from it."""


@dataclass
class StopConfig:
    """Cutting a launch short that can no longer matter.

    Never a baseline, a seed or a confirmation. See `sweeper.trial.cutting` for the rule.
    """

    name: str = "default"
    early: bool = True
    """Whether launches are cut, and load levels that cannot matter are left out."""
    after: int = 6
    """Launches that are measured whole before one may be cut; 2 at least."""
    margin_share: float | None = None
    """Differences up to this share are noise; None takes what the study knows of its noise, and
    0.05 where it knows nothing yet."""


@dataclass
class ConfirmConfig:
    """Fresh, interleaved launches of the best deployments and of the baseline, at a study's end.

    No part of a study's identity: a finished study can be confirmed later.
    """

    name: str = "default"
    candidates: int = 2
    """Best deployments that are launched again beside the baseline, at most."""
    repeats: int | None = None
    """Launches of each, 3 at least; 0: nothing is launched again; None: 3 where the budget leaves
    the search 12 launches (or two thirds of its minutes or money) beside them, else 0."""
