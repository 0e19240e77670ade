"""How a study is asked to end, and when it heeds that.

    Ctrl-C, Ctrl-\\, TERM, HUP, output nobody reads ──► KeyboardInterrupt, where the study stands
        └─ while the server of a measured trial is being stopped: once its line is in the journal
    the same again ──► KeyboardInterrupt at once (a server that ends is killed then)

What the caller had ignored stays ignored: `nohup` asks to outlive the terminal, and with it the
terminal's going silent.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType, TracebackType
from typing import IO

from sweeper.trial.progress import Event, Listener, Note, PhaseChanged, TrialEnded, TrialStarted
from sweeper.verdicts import Phase

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupts:
    """Context manager: requests to end become KeyboardInterrupt, but for what must be finished."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, object] = {}
        self._finishing = False
        self._asked = False
        self.is_ending = False
        """True once the study has been interrupted."""

    @property
    def outlives_terminal(self) -> bool:
        """True if the caller had the hang-up of its terminal ignored."""
        return signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    def __enter__(self) -> Interrupts:
        for number in WATCHED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._heed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def observe(self, event: Event) -> None:
        """Follow the study: from the stop of a server to the journal line nothing is broken off.

        Raises:
            KeyboardInterrupt: the study goes on although it was interrupted. An exception that is
                raised while an object is finalised is only printed by Python, and lost.
        """
        if self.is_ending and not isinstance(event, Note):
            raise KeyboardInterrupt
        if isinstance(event, PhaseChanged):
            self._finishing = event.phase == Phase.STOP
        elif isinstance(event, TrialEnded | TrialStarted):
            self._finishing = False

    def catch_up(self) -> None:
        """Heed what was asked for while something was finished. Raises KeyboardInterrupt then."""
        if self._asked and not self._finishing:
            self._asked = False
            self._interrupt()

    def _heed(self, signum: int, frame: FrameType | None) -> None:
        if self._finishing and not self._asked:
            self._asked = True
            return
        self._interrupt()

    def _interrupt(self) -> None:
        self.is_ending = True
        raise KeyboardInterrupt


class Voice:
    """A listener whose output may break: that is a request to end, or nothing at all.

    Args:
        listener: shows the events.
        interrupts: decides what silence means.
    """

    def __init__(self, listener: Listener, interrupts: Interrupts) -> None:
        self._listener = listener
        self._interrupts = interrupts

    def __call__(self, event: Event) -> None:
        """Show an event."""
        try:
            self._listener(event)
        except (OSError, ValueError):
            # A pipe whose reader went (EPIPE), a terminal that is gone (EIO), a closed file.
            silence(sys.stdout)
            if not (self._interrupts.is_ending or self._interrupts.outlives_terminal):
                os.kill(os.getpid(), signal.SIGTERM)


def silence(stream: IO[str]) -> None:
    """Let what is still said go nowhere, so that the end of the process does not fail on it."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def say(text: str) -> None:
    """A line on standard error, if somebody listens."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        silence(sys.stderr)
