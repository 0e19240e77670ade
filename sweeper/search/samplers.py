"""Samplers by name: those of this product, and Optuna's with the settings they are used with.

    gp, staged, qmc, grid      decide by the journal alone (`sweeper.search.policy`); Optuna's study
                               records what they chose
    tpe, nsgaii, random        Optuna's; asked for one trial at a time, with a seed that follows
                               from how many were told

Either way a study that was interrupted goes on as it would have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from sweeper.config.schema import SamplerConfig

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from sweeper.search.policy.chooser import Chooser, Ground

CHOOSERS = {
    "gp": "sweeper.search.policy.next_best:NextBest",
    "staged": "sweeper.search.policy.staged:Staged",
    "qmc": "sweeper.search.policy.in_order:LowDiscrepancy",
    "grid": "sweeper.search.policy.in_order:Listed",
}
OF_OPTUNA = ("tpe", "nsgaii", "random")
AUTO = "gp"
"""What `auto` takes, see docs/decisions/0015."""
STARTUP = {"gp": 3, "tpe": 5, "nsgaii": 5}
"""Trials known before a sampler begins to model, unless `sampler.startup_trials` says it."""


def sampler_kind(cfg: SamplerConfig) -> str:
    """Resolve `auto`."""
    return AUTO if cfg.kind == "auto" else cfg.kind


def startup_trials(cfg: SamplerConfig) -> int:
    """Trials known before the sampler begins to model."""
    given = cfg.startup_trials
    return STARTUP.get(sampler_kind(cfg), 0) if given is None else given


def make_chooser(ground: Ground) -> Chooser | None:
    """The sampler as something that decides by itself, None if it is Optuna's."""
    found = CHOOSERS.get(sampler_kind(ground.sampler))
    if found is None:
        return None
    module, _, name = found.partition(":")
    chooser: Chooser = getattr(import_module(module), name)(ground)
    return chooser


def is_conditional(kind: str) -> bool:
    """Whether the sampler is asked branch by branch, or given the flattened space.

    NSGA-II crosses over only what every trial has, so it gets every parameter of every branch; the
    canonical form then drops what is inactive.
    """
    return kind in {"tpe", "random"}


def is_modelling(kind: str) -> bool:
    """Whether the sampler learns from outcomes which deployments are worth a try."""
    return kind in STARTUP


def make_sampler(cfg: SamplerConfig, seed: int) -> BaseSampler:
    """Build Optuna's sampler; a random one, which is never asked, for those that are not Optuna's.

    Args:
        cfg: settings.
        seed: of this very sampler.
    """
    import optuna
    from optuna import samplers

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    startup = startup_trials(cfg)
    table: dict[str, Callable[[], BaseSampler]] = {
        "tpe": lambda: samplers.TPESampler(
            seed=seed, n_startup_trials=startup, multivariate=True, group=True, constant_liar=True
        ),
        "nsgaii": lambda: samplers.NSGAIISampler(seed=seed, population_size=max(startup * 2, 8)),
    }
    with warnings.catch_warnings():
        # Optuna calls grouped TPE experimental; its interface is pinned by optuna < 6.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        kind = sampler_kind(cfg)
        return table[kind]() if kind in table else samplers.RandomSampler(seed=seed)
