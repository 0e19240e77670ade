"""The part of a space that an engine which models another one can vary."""

from __future__ import annotations

from sweeper.engine.modelling import Modelling, Surroundings
from sweeper.models.resolve import config_only
from sweeper.search.setup import StudySetup
from sweeper.space.model import Space
from sweeper.trial.progress import Listener, Note


def modelled(setup: StudySetup, listener: Listener) -> Space:
    """All of the study's space, unless its engine models another one.

    Raises:
        UserError: a model or a device that it knows nothing of.
        EngineError: it cannot be had on this machine.
    """
    cfg, engine = setup.cfg, setup.engine
    if not isinstance(engine, Modelling):
        return setup.space
    surroundings = Surroundings(
        config_only(cfg.model), setup.hardware, cfg.workload, setup.selection.serve
    )
    foreseen = engine.foresee(surroundings, setup.space, lambda text: listener(Note(text)))
    for note in foreseen.notes:
        listener(Note(note))
    return foreseen.space
