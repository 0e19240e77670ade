"""One load level from its warm-up to its record.

    warm-up (own prompts, rounds until stable) → counters → measured requests → counters
                                                    │     gauges, loop lag        │
                                                    └───── compared by metrics ───┘

The server's counters are read after the warm-up, so that what they count is what is measured.
Failures are records, not exceptions.
"""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sweeper.config.schema import LoadConfig
from sweeper.load.address import ServerAddress
from sweeper.load.client import Client
from sweeper.load.closed import run_closed
from sweeper.load.decoding import Decoding
from sweeper.load.hang import HangWatch
from sweeper.load.level import CLOSED, LoadLevel
from sweeper.load.phase import Phase, TextSink
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord, WarmUp
from sweeper.load.scheduled import run_scheduled
from sweeper.load.server_metrics import scrape
from sweeper.load.supervisor import Supervisor
from sweeper.load.warm_up import warm_up
from sweeper.load.watch import Watch
from sweeper.load.workload.item import WorkItem, Workload

# A level by the clock has no streams whose round of failures could be counted.
FAILURES_IN_A_ROW_BY_THE_CLOCK = 32
MAX_WARM_UP_STREAMS_BY_THE_CLOCK = 32


@dataclass(frozen=True)
class DriveOptions:
    """How a level is driven beside its load; fields as in `sweeper.config.schema.LoadConfig`."""

    request_timeout_s: float = 300.0
    level_timeout_s: float = 1800.0
    warmup_requests_per_stream: int = 1
    warmup_max_rounds: int = 1
    warmup_tolerance_share: float = 0.1
    gauges_every_s: float = 1.0
    hang_timeout_s: float | None = None
    """How long a server may write nothing; None leaves it to the other deadlines."""

    @classmethod
    def of(cls, load: LoadConfig, hang_timeout_s: float | None = None) -> DriveOptions:
        return cls(
            load.request_timeout_s,
            load.level_timeout_s,
            load.warmup_requests_per_stream,
            load.warmup_max_rounds,
            load.warmup_tolerance_share,
            load.gauges_every_s,
            hang_timeout_s,
        )


@dataclass(frozen=True)
class Listeners:
    """Who is told what while a level runs.

    Attributes:
        on_record: each measured record as it comes.
        on_text: (index, item, output); None keeps no text.
        is_alive: False once the server's process is gone; the level then ends at once.
    """

    on_record: Callable[[RequestRecord], None] | None = None
    on_text: TextSink | None = None
    is_alive: Callable[[], bool] | None = None


@dataclass(frozen=True)
class _Job:
    """What `run_level` is given."""

    level: LoadLevel
    workload: Workload
    stream: str
    decoding: Decoding
    options: DriveOptions
    listeners: Listeners


@dataclass
class _Driven:
    """What came of a level, filled in as it goes on."""

    job: _Job
    client: Client
    guard: Supervisor
    warm_up: WarmUp = field(default_factory=WarmUp)
    phase: Phase | None = None
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    watch: Watch | None = None
    warm_up_s: float = 0.0
    total_s: float = 0.0


def run_level(
    server: ServerAddress,
    level: LoadLevel,
    workload: Workload,
    *,
    stream: str,
    decoding: Decoding | None = None,
    options: DriveOptions | None = None,
    listeners: Listeners | None = None,
) -> LevelRun:
    """Drive one load level and note what happened.

    Args:
        server: where to send.
        level: how hard; of any kind but ``batch``.
        workload: what to send.
        stream: name of this level's prompts and arrivals; different for each level and trial.
        decoding: greedy to a fixed length unless given.
        options: deadlines, warm-up, gauges.
        listeners: told of requests as they end.
    """
    job = _Job(
        level,
        workload,
        stream,
        decoding or Decoding(),
        options or DriveOptions(),
        listeners or Listeners(),
    )
    with _quiet_collector():
        return asyncio.run(_drive(server, job))


async def _drive(server: ServerAddress, job: _Job) -> LevelRun:
    started_s = time.perf_counter()
    guard = Supervisor(
        job.level.concurrency or FAILURES_IN_A_ROW_BY_THE_CLOCK,
        started_s + job.options.level_timeout_s,
        job.options.level_timeout_s,
        job.listeners.is_alive,
    )
    client = Client(
        server.base_url, server.model, server.api_key, job.options.request_timeout_s, guard.cut
    )
    driven = _Driven(job, client, guard)
    hang_s = job.options.hang_timeout_s
    async with client:
        if hang_s is not None:
            watch = HangWatch(hang_s, client.in_flight, lambda: client.answered)
            guard.hung = lambda: watch.until_hung(client.session, server)
        await _warm(driven)
        if not guard.ended:
            driven.before = await scrape(client.session, server)
            driven.watch = Watch(client.session, server, job.options.gauges_every_s)
            await _measure(driven, driven.watch)
            if not guard.ended:
                driven.after = await scrape(client.session, server)
    driven.total_s = time.perf_counter() - started_s
    return _level_run(driven)


async def _warm(driven: _Driven) -> None:
    job = driven.job
    streams = warm_up_streams(job.level)
    requests = streams * job.options.warmup_requests_per_stream

    def phase_of(number: int) -> Phase:
        items = _without_pauses(job.workload.items(f"{job.stream}/warm-up-{number}"))
        return Phase(driven.client, driven.guard, job.decoding, items, requests)

    started_s = time.perf_counter()
    driven.warm_up = await warm_up(
        phase_of,
        streams=streams,
        requests=requests,
        max_rounds=job.options.warmup_max_rounds,
        tolerance_share=job.options.warmup_tolerance_share,
    )
    driven.warm_up_s = time.perf_counter() - started_s


def warm_up_streams(level: LoadLevel) -> int:
    """Streams of the warm-up: the level's own; by the clock, one second's worth of arrivals."""
    if level.concurrency is not None:
        return level.concurrency
    rate = level.rate_per_s or 1.0
    return min(MAX_WARM_UP_STREAMS_BY_THE_CLOCK, max(2, math.ceil(rate)))


def _without_pauses(items: Iterator[WorkItem]) -> Iterator[WorkItem]:
    """A warm-up of conversations needs neither the pauses nor the later turns."""
    return (replace(item, next_turn=None, think_time_s=0.0) for item in items)


async def _measure(driven: _Driven, watch: Watch) -> None:
    job = driven.job
    phase = Phase(
        driven.client,
        driven.guard,
        job.decoding,
        job.workload.items(job.stream),
        job.level.requests,
        job.listeners.on_record,
        job.listeners.on_text,
    )
    driven.phase = phase
    watching = watch.start(phase.epoch_s)
    try:
        if job.level.kind == CLOSED:
            await run_closed(phase, job.level.concurrency or 1)
        else:
            await run_scheduled(phase, job.level, job.stream)
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


def _level_run(driven: _Driven) -> LevelRun:
    phase, watch, job, level = driven.phase, driven.watch, driven.job, driven.job.level
    records = tuple(sorted(phase.records, key=lambda record: record.index)) if phase else ()
    duration_s = phase.duration_s if phase else 0.0
    reason = driven.guard.cut.reason
    if phase is None and reason is not None:
        reason = f"warm-up: {reason}"
    if reason is None and records and len(records) < level.requests:
        level = replace(level, requests=len(records))  # the workload was shorter than the level
    return LevelRun(
        level=level,
        records=records,
        window_s=_window(phase, level, records),
        duration_s=duration_s,
        client_cpu_s=phase.cpu_s if phase else 0.0,
        server_before=driven.before,
        server_after=driven.after,
        fixed_output=job.decoding.ignore_eos,
        exact_input=job.workload.exact,
        shares_prefix=job.workload.shares_prefix,
        ended_early=reason,
        hung=driven.guard.has_hung,
        warm_up=driven.warm_up,
        gauges=tuple(watch.gauges) if watch else (),
        loop_lag_p95_s=watch.lag_p95_s if watch else None,
        overhead_s=max(0.0, driven.total_s - driven.warm_up_s - duration_s),
        beam_width=job.decoding.beam_width,
    )


def _window(
    phase: Phase | None, level: LoadLevel, records: tuple[RequestRecord, ...]
) -> tuple[float, float]:
    """See `LevelRun.window_s`."""
    if phase is None:
        return 0.0, 0.0
    if level.scheduled:
        lives = [r.finished_s - r.scheduled_s for r in records if r.outcome is RequestOutcome.OK]
        first_s = min((record.scheduled_s for record in records), default=0.0)
        start_s = first_s + (sum(lives) / len(lives) if lives else 0.0)
        end_s = max((record.scheduled_s for record in records), default=0.0)
    else:
        start_s = max(phase.first_sends_s, default=0.0)
        end_s = phase.duration_s if phase.first_idle_s is None else phase.first_idle_s
    return start_s, max(start_s, end_s)


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """Keep the garbage collector away from what the tuner has already built.

    A full collection over everything mlflow and optuna hold stops the client for a tenth of a
    second, which would be read as the server's latency.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
