"""The guide of a study, as its journal has taught it so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sweeper.search.priors.guide import Guide, Refused
from sweeper.search.priors.prior import Say
from sweeper.search.priors.registry import create
from sweeper.space.model import Space
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    from sweeper.search.setup import StudySetup


def guide_of(
    setup: StudySetup,
    space: Space,
    outcomes: Iterable[TrialOutcome],
    refused: Refused,
    say: Say,
) -> Guide | None:
    """A guide that knows what was measured already; None where nothing is known beforehand.

    Args:
        setup: of the study.
        space: the part of its space that is searched.
        outcomes: of its journal, the last attempt of each trial.
        refused: whether a deployment would not be launched.
        say: told what the priors cannot tell.

    Raises:
        ConfigError: a prior is asked for something that is not there.
    """
    priors = create(setup, say)
    if not priors:
        return None
    guide = Guide(priors, setup.cfg, space, refused, say)
    for outcome in outcomes:
        guide.learn(outcome)
    return guide
