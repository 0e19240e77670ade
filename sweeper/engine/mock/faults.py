"""Faults of the mock server as they strike; what there is to strike stands in `fault`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sweeper.engine.httpd import DropConnection, Response, as_json
from sweeper.engine.mock.children import start_child
from sweeper.engine.mock.fault import Fault
from sweeper.engine.mock.garbage import garbage_answer
from sweeper.engine.mock.language import Writing

FOREVER_S = 600.0
PROGRESS_EVERY_S = 0.2
FIRST_DELAY_S = 0.001
MAX_DELAY_S = 600.0
_LOG_LINE = (
    b"(EngineCore pid=1) INFO 01-01 00:00:00 [mock.py:1] Engine 000: Avg generation throughput: "
    b"512.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs\n"
)


class Faults:
    """The faults of one launch, and the requests counted so far, by stage."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)
        self._asked: Counter[str] = Counter()

    @classmethod
    def of(cls, faults: Sequence[Fault], parameters: Mapping[str, Any], launch: str) -> Faults:
        """Those that are meant for a launch; see `Fault.strikes`."""
        meant = [fault for fault in faults if fault.strikes(parameters, launch)]
        return cls([fault for fault in meant if not fault.once or _first_time(Path(fault.once))])

    @property
    def shares_port(self) -> bool:
        return any(fault.shares_port for fault in self._faults)

    @property
    def no_usage(self) -> bool:
        return any(fault.no_usage for fault in self._faults)

    @property
    def nan_scores(self) -> bool:
        return any(fault.nan_scores for fault in self._faults)

    @property
    def empty_first_chunk(self) -> bool:
        return any(fault.empty_first_chunk for fault in self._faults)

    @property
    def writing(self) -> Writing:
        """How it departs from its own choices when it writes."""
        return Writing(
            stuck=any(fault.writes_stuck for fault in self._faults),
            slips=max((fault.writing_slips for fault in self._faults), default=0.0),
            batch_slips=max((fault.batch_slips for fault in self._faults), default=0.0),
        )

    @property
    def slow_factor(self) -> float:
        factor = 1.0
        for fault in self._faults:
            factor *= fault.slow_factor
        return factor

    def told_name(self, served_name: str) -> str:
        """The name that `/v1/models` tells."""
        return next((f.model_name for f in self._faults if f.model_name), served_name)

    def told(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that the server says it acts on: all but those it ignores openly."""
        ignored = {name for fault in self._faults for name in fault.ignores}
        return {name: value for name, value in parameters.items() if name not in ignored}

    def followed(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that the server does act on."""
        ignored = {name for fault in self._faults for name in fault.pretends}
        told = self.told(parameters)
        return {name: value for name, value in told.items() if name not in ignored}

    def at_start(self, launch: str, device_memory: str) -> None:
        """What happens before the server listens.

        Args:
            launch: mark on the command lines of children.
            device_memory: see `sweeper.engine.mock.options.MockOptions`.
        """
        for fault in self._faults:
            if fault.keeps_gib:
                _take(Path(device_memory), fault.keeps_gib)
            if fault.hang_at == "stop":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if fault.child:
                start_child(fault.child, launch)
            _progress(fault.slow_start_s)
            if fault.die_at == "start":
                die(fault)
            if fault.hang_at == "start":
                say(fault)
                time.sleep(FOREVER_S)

    async def at_health(self) -> Response | None:
        """What happens when `/health` is asked; None lets it be answered."""
        struck = await self._at("listening")
        if struck is None and any(fault.unhealthy for fault in self._faults):
            return Response(503)
        return struck

    async def at_tokenize(self) -> Response | None:
        """What happens when a prompt is tokenized; None lets it be answered."""
        return await self._at("warmup")

    async def at_completion(self, *, judged: bool, stream: bool) -> Response | None:
        """What happens when a completion is asked for; None lets it be answered.

        Args:
            judged: it tells token ids or log-probabilities.
            stream: it is answered as a stream of events.
        """
        before = self._asked["ready"]
        for fault in self._faults:
            await _slower(fault, before)
            if 0 <= fault.http_500_after <= before:
                self._asked["ready"] += 1
                say(fault)
                return as_json(
                    {"error": {"message": "EngineCore encountered an issue.", "code": 500}}, 500
                )
            if fault.reset_connection_every and (before + 1) % fault.reset_connection_every == 0:
                self._asked["ready"] += 1
                raise DropConnection
        stages = ["ready", *(["load"] if before else []), *(["quality"] if judged else [])]
        for stage in stages:
            struck = await self._at(stage, stream=stream)
            if struck is not None:
                return struck
        return None

    def at_stop(self) -> None:
        """What happens when the server is asked to end."""
        for fault in self._faults:
            if fault.die_at == "stop":
                die(fault)

    async def _at(self, stage: str, *, stream: bool = False) -> Response | None:
        before = self._asked[stage]
        self._asked[stage] += 1
        for fault in self._faults:
            if stage in {"load", "quality"} and before < fault.after_requests:
                continue
            if fault.die_at == stage:
                die(fault)
            if fault.hang_at == stage:
                say(fault)
                await asyncio.sleep(FOREVER_S)
            if fault.garbage_at == stage:
                say(fault)
                return garbage_answer(fault.garbage, stream=stream)
        return None


def say(fault: Fault) -> None:
    """Write to the log what the fault has to say."""
    out = sys.stdout.buffer
    if fault.log_mib:
        block = _LOG_LINE * ((1 << 20) // len(_LOG_LINE) + 1)
        for _ in range(fault.log_mib):
            out.write(block)
    if fault.log_binary:
        out.write(bytes(range(256)) * 64 + b"\n")
    if fault.log_text:
        out.write(fault.log_text.encode(fault.log_encoding) + b"\n")
    sys.stdout.flush()


def die(fault: Fault) -> None:
    """End the process at once, by exit code or by signal."""
    say(fault)
    if fault.exit_code < 0:
        os.kill(os.getpid(), -fault.exit_code)
        time.sleep(5)
    os._exit(fault.exit_code)


def _first_time(mark: Path) -> bool:
    """True for the one launch that makes the file."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _take(device_memory: Path, gib: float) -> None:
    """Hold memory of the device; whole or not at all, because others read it meanwhile."""
    told = json.loads(device_memory.read_text())
    fresh = device_memory.with_name(f"{device_memory.name}.{os.getpid()}")
    fresh.write_text(json.dumps({**told, "free_gib": told["free_gib"] - gib}))
    fresh.replace(device_memory)


def _progress(seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        print(f"Loading safetensors checkpoint shards: {left:.1f} s left", flush=True)
        time.sleep(min(left, PROGRESS_EVERY_S))


async def _slower(fault: Fault, before: int) -> None:
    if fault.slower_by > 1:
        await asyncio.sleep(min(MAX_DELAY_S, FIRST_DELAY_S * fault.slower_by**before))
