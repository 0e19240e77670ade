"""Optuna's samplers by name, with the settings this product uses them with."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from sweeper.config.schema import SamplerConfig

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler


def sampler_kind(cfg: SamplerConfig) -> str:
    """Resolve `auto`: the Gaussian process where torch is there (it needs it), TPE otherwise."""
    if cfg.kind != "auto":
        return cfg.kind
    return "gp" if importlib.util.find_spec("torch") else "tpe"


def is_conditional(kind: str) -> bool:
    """Whether the sampler is asked branch by branch, or given the flattened space.

    GP, QMC and NSGA-II model jointly only what every trial has, so they get every parameter of
    every branch; the canonical form then drops what is inactive.
    """
    return kind in {"tpe", "random"}


def make_sampler(cfg: SamplerConfig) -> BaseSampler:
    """Build the sampler of a study. Seeds by `cfg.seed`.

    `grid` walks the listed deployments itself (see `sweeper.search.candidates`); Optuna's grid
    would repeat what was enqueued and can only end a study that it runs itself.
    """
    import optuna
    from optuna import samplers

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kind = sampler_kind(cfg)
    table: dict[str, Callable[[], BaseSampler]] = {
        "gp": lambda: samplers.GPSampler(
            seed=cfg.seed, n_startup_trials=cfg.startup_trials, deterministic_objective=False
        ),
        "tpe": lambda: samplers.TPESampler(
            seed=cfg.seed,
            n_startup_trials=cfg.startup_trials,
            multivariate=True,
            group=True,
            constant_liar=True,
        ),
        "random": lambda: samplers.RandomSampler(seed=cfg.seed),
        "nsgaii": lambda: samplers.NSGAIISampler(
            seed=cfg.seed, population_size=max(cfg.startup_trials * 2, 8)
        ),
        "qmc": lambda: samplers.QMCSampler(seed=cfg.seed, scramble=True),
        "grid": lambda: samplers.RandomSampler(seed=cfg.seed),
    }
    with warnings.catch_warnings():
        # Optuna calls QMC and grouped TPE experimental; their interface is pinned by optuna < 6.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return table[kind]()
