"""A request to end is heeded even where Python loses the exception that carries it."""

from __future__ import annotations

import os
import signal

import pytest

from sweeper.trial.progress import Note, PhaseChanged
from sweeper.verbs.interrupts import Interrupts
from sweeper.verdicts import Phase


class _Finalised:
    """Is being finalised when the signal comes."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):  # the handler runs between two instructions of this
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_was_lost_in_a_finaliser_comes_again() -> None:
    with Interrupts() as interrupts:
        _Finalised()  # KeyboardInterrupt is raised in it, printed, and gone
        assert interrupts.is_ending
        interrupts.observe(Note("what is said while the server is stopped breaks nothing off"))
        with pytest.raises(KeyboardInterrupt):
            interrupts.observe(PhaseChanged(0, Phase.LOAD))


def test_nothing_comes_without_a_request() -> None:
    with Interrupts() as interrupts:
        interrupts.observe(PhaseChanged(0, Phase.LOAD))
        interrupts.catch_up()
        assert not interrupts.is_ending
