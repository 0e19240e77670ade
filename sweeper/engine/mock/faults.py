"""Faults of the mock server as they strike: deaths, hangs, errors, children that do not end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sweeper.engine.httpd import DropConnection, Response, as_json
from sweeper.engine.mock.options import Fault

_STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    "time.sleep(600)\n"
)


class Faults:
    """The faults meant for this deployment, and the completions counted so far."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)
        self._completions = 0

    @property
    def no_usage(self) -> bool:
        return any(fault.no_usage for fault in self._faults)

    @property
    def empty_first_chunk(self) -> bool:
        return any(fault.empty_first_chunk for fault in self._faults)

    def followed(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that the server acts on: all but those that a fault makes it ignore."""
        ignored = {name for fault in self._faults for name in fault.ignores}
        return {name: value for name, value in parameters.items() if name not in ignored}

    @property
    def slow_factor(self) -> float:
        factor = 1.0
        for fault in self._faults:
            factor *= fault.slow_factor
        return factor

    def at_start(self) -> None:
        """What happens before the server listens."""
        for fault in self._faults:
            if fault.ignore_sigterm:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if fault.stubborn_child:
                subprocess.Popen([sys.executable, "-c", _STUBBORN], start_new_session=True)
            if fault.die_at == "start":
                die(fault)
            if fault.hang_at == "start":
                say(fault)
                time.sleep(600)

    async def at_completion(self) -> Response | None:
        """What happens when a completion is asked for; None lets it be answered."""
        before = self._completions
        self._completions += 1
        for fault in self._faults:
            if _struck(fault.die_at, fault, before):
                die(fault)
            if _struck(fault.hang_at, fault, before):
                say(fault)
                await asyncio.sleep(600)
            if 0 <= fault.http_500_after <= before:
                say(fault)
                return as_json(
                    {"error": {"message": "EngineCore encountered an issue.", "code": 500}}, 500
                )
            every = fault.reset_connection_every
            if every and self._completions % every == 0:
                raise DropConnection
        return None


def _struck(stage: str, fault: Fault, before: int) -> bool:
    """Whether a fault of a stage strikes when `before` completions came earlier."""
    return stage == "ready" or (stage == "load" and before > fault.after_requests)


def say(fault: Fault) -> None:
    if fault.log_text:
        print(fault.log_text, flush=True)


def die(fault: Fault) -> None:
    """End the process at once, by exit code or by signal."""
    say(fault)
    sys.stdout.flush()
    if fault.exit_code < 0:
        os.kill(os.getpid(), -fault.exit_code)
        time.sleep(5)
    os._exit(fault.exit_code)
