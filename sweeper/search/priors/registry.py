"""Priors by kind, each imported only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sweeper.config.schema import PriorConfig
from sweeper.search.priors.prior import Prior, Say

if TYPE_CHECKING:
    from sweeper.search.setup import StudySetup

PRIORS = {
    "simulator": "sweeper.search.priors.simulator:make",
    "studies": "sweeper.search.priors.studies:make",
    "roofline": "sweeper.search.priors.roofline:make",
    "published": "sweeper.search.priors.published:make",
}
"""In the order of what they know."""


def kinds_of(cfg: PriorConfig) -> list[str]:
    """The kinds in use, in the registry's order: those listed, and `studies` where paths are."""
    wanted = {*cfg.kinds, *(["studies"] if cfg.studies else [])}
    return [kind for kind in PRIORS if kind in wanted]


def create(setup: StudySetup, say: Say) -> list[Prior]:
    """The priors of a study. One that has nothing to say of it is left out, and why is said.

    Raises:
        ConfigError: a study named as a prior cannot be read, or has nothing in common with this.
    """
    made: list[Prior] = []
    for kind in kinds_of(setup.cfg.prior):
        module, _, name = PRIORS[kind].partition(":")
        prior: Prior | str = getattr(import_module(module), name)(setup, say)
        if isinstance(prior, str):
            say(f"prior {kind} is left out: {prior}")
        else:
            made.append(prior)
    return made
