"""Checks of what steers a search: one function a part."""

from __future__ import annotations

from sweeper.config.schema import SweeperConfig
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError

MIN_REPEATS = 3
PRIOR_KINDS = ("simulator", "studies", "roofline", "published")


def check_stop(cfg: SweeperConfig) -> None:
    """Early stops need something to compare with, and a margin that is a share.

    Raises:
        ConfigError: they do not.
    """
    stop = cfg.stop
    if stop.after < 2:
        raise ConfigError(
            f"stop.after={stop.after} launches cannot show how load levels differ",
            "set stop.after=2 or more, or stop=none to cut no launch",
        )
    if stop.margin_share is not None and not 0 <= stop.margin_share < 1:
        raise ConfigError(
            f"stop.margin_share={stop.margin_share:g} is not a share",
            "set for example stop.margin_share=0.05, or null for what the study measured",
        )


def check_confirm(cfg: SweeperConfig) -> None:
    """A confirmation compares at least one deployment with the defaults, at least three times.

    Raises:
        ConfigError: it would not.
    """
    confirm = cfg.confirm
    if confirm.candidates < 1:
        raise ConfigError(
            f"confirm.candidates={confirm.candidates} leaves nothing to confirm",
            "set confirm.candidates=2, or confirm.repeats=0 to launch nothing again",
        )
    repeats = confirm.repeats
    if repeats is not None and (repeats < 0 or 0 < repeats < MIN_REPEATS):
        raise ConfigError(
            f"confirm.repeats={repeats}: so few launches do not tell a gain from noise",
            f"set confirm.repeats={MIN_REPEATS} or more, 0 to launch nothing again, or null to "
            "let the budget decide",
        )
    launches = cfg.budget.launches
    if repeats and launches is not None and launches < 2 * repeats + 2:
        raise ConfigError(
            f"budget.launches={launches} has no room for confirm.repeats={repeats}: that takes "
            f"{2 * repeats} launches, the defaults' own with them, beside a search of two",
            f"set budget.launches={2 * repeats + 2} or more, or confirm.repeats=0",
        )


def check_prior(cfg: SweeperConfig) -> None:
    """Priors are of a known kind, and studies are named where they are to be used.

    Raises:
        ConfigError: they are not.
    """
    prior = cfg.prior
    for kind in prior.kinds:
        if kind not in PRIOR_KINDS:
            raise ConfigError(
                f"prior.kinds has {kind}, which is no prior",
                did_you_mean(kind, PRIOR_KINDS, what="priors"),
            )
    if "studies" in prior.kinds and not prior.studies:
        raise ConfigError(
            "prior.kinds has studies, and prior.studies names none",
            "name finished studies, for example 'prior.studies=[studies/qwen7b-h100]'",
        )
    if prior.seeds < 0:
        raise ConfigError(
            f"prior.seeds={prior.seeds} is negative",
            "set prior.seeds=5, or 0 to order without seeding",
        )
    if prior.predictions < 1:
        raise ConfigError(
            f"prior.predictions={prior.predictions} leaves nothing to learn from",
            "set prior.predictions=800, or leave the simulator out of prior.kinds",
        )
    if prior.hardware is not None and "simulator" not in prior.kinds:
        raise ConfigError(
            f"prior.hardware={prior.hardware} is for the simulator, which prior.kinds lacks",
            "take prior=simulator, or leave prior.hardware out",
        )
