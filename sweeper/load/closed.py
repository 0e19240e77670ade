"""Closed loop: a fixed number of streams, each sending its next request when the last one ended.

    warm-up (own prompts, same concurrency) → counters → measured requests → counters
                                                 │                             │
                                                 └───── compared by metrics ───┘

The server's counters are read after the warm-up, so that what they count is what is measured.
In a closed loop a request is due when its stream is free: scheduled and sent are the same moment.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sweeper.load.address import ServerAddress
from sweeper.load.client import Client, Decoding
from sweeper.load.prompts import Prompt, PromptSource
from sweeper.load.records import LevelRun, RequestRecord
from sweeper.load.server_metrics import scrape
from sweeper.load.supervisor import Supervisor

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LevelPlan:
    """One load level: see `run_level` for the fields."""

    concurrency: int
    requests: int
    warmup_requests: int
    input_tokens: int
    decoding: Decoding
    stream: str
    request_timeout_s: float
    level_timeout_s: float

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.requests < 1 or self.warmup_requests < 0:
            raise ValueError("a level needs at least one stream and one request")


@dataclass
class _Phase:
    """Requests driven to their end. Times are seconds from the start of the phase."""

    records: list[RequestRecord] = field(default_factory=list)
    first_sends_s: list[float] = field(default_factory=list)
    first_idle_s: float | None = None
    duration_s: float = 0.0
    cpu_s: float = 0.0


def run_level(
    server: ServerAddress,
    *,
    concurrency: int,
    requests: int,
    warmup_requests: int,
    prompts: PromptSource,
    stream: str,
    input_tokens: int,
    output_tokens: int,
    temperature: float,
    ignore_eos: bool,
    request_timeout_s: float,
    level_timeout_s: float,
    on_progress: Progress | None = None,
    is_alive: Callable[[], bool] | None = None,
    seed: int | None = None,
) -> LevelRun:
    """Drive one load level and note what happened. Failures are records, not exceptions.

    Args:
        server: where to send.
        concurrency: streams in flight.
        requests: measured requests.
        warmup_requests: requests before them, not recorded; 0 for none.
        prompts: where prompts come from.
        stream: name of this level's prompts; different for each level and trial.
        input_tokens, output_tokens: lengths asked for.
        temperature, ignore_eos, seed: see `sweeper.load.client.Decoding`.
        request_timeout_s: deadline of one request.
        level_timeout_s: deadline of the level, warm-up included.
        on_progress: called with (done, total) after each measured request.
        is_alive: False once the server's process is gone; the level then ends at once.
    """
    decoding = Decoding(output_tokens, temperature, ignore_eos, seed)
    plan = LevelPlan(
        concurrency=concurrency,
        requests=requests,
        warmup_requests=warmup_requests,
        input_tokens=input_tokens,
        decoding=decoding,
        stream=stream,
        request_timeout_s=request_timeout_s,
        level_timeout_s=level_timeout_s,
    )
    with _quiet_collector():
        return asyncio.run(drive(server, plan, prompts, on_progress, is_alive))


async def drive(
    server: ServerAddress,
    plan: LevelPlan,
    prompts: PromptSource,
    on_progress: Progress | None = None,
    is_alive: Callable[[], bool] | None = None,
) -> LevelRun:
    """`run_level` for callers that have an event loop."""
    deadline_s = time.perf_counter() + plan.level_timeout_s
    guard = Supervisor(plan.concurrency, deadline_s, plan.level_timeout_s, is_alive)
    client = Client(
        server.base_url, server.model, server.api_key, plan.request_timeout_s, guard.cut
    )
    async with client:
        warm = prompts.stream(plan.input_tokens, f"{plan.stream}/warm-up")
        await _run_phase(client, guard, plan, prompts=warm, requests=plan.warmup_requests)
        if guard.ended:
            reason = f"warm-up: {guard.cut.reason}"
            return _level_run(plan, _Phase(), exact_input=prompts.exact, ended_early=reason)
        before = await scrape(client.session, server)
        measured = prompts.stream(plan.input_tokens, plan.stream)
        phase = await _run_phase(
            client,
            guard,
            plan,
            prompts=measured,
            requests=plan.requests,
            on_progress=on_progress,
        )
        after = {} if guard.ended else await scrape(client.session, server)
    return _level_run(
        plan,
        phase,
        before=before,
        after=after,
        exact_input=prompts.exact,
        ended_early=guard.cut.reason,
    )


async def _run_phase(
    client: Client,
    guard: Supervisor,
    plan: LevelPlan,
    *,
    prompts: Iterator[Prompt],
    requests: int,
    on_progress: Progress | None = None,
) -> _Phase:
    phase = _Phase()
    indices = iter(range(requests))
    epoch_s, cpu_s = time.perf_counter(), time.process_time()

    async def stream() -> None:
        sent_any = False
        for index in indices:
            body = plan.decoding.body(client.model, next(prompts))
            if not sent_any:
                phase.first_sends_s.append(time.perf_counter() - epoch_s)
                sent_any = True
            record = await client.complete(index, body, epoch_s)
            phase.records.append(record)
            guard.note(record)
            if on_progress is not None:
                on_progress(len(phase.records), requests)
            if guard.ended:
                return
        if phase.first_idle_s is None:
            phase.first_idle_s = time.perf_counter() - epoch_s

    workers = min(plan.concurrency, requests)
    await guard.run([asyncio.create_task(stream()) for _ in range(workers)])
    phase.duration_s = time.perf_counter() - epoch_s
    phase.cpu_s = time.process_time() - cpu_s
    return phase


def _level_run(
    plan: LevelPlan,
    phase: _Phase,
    *,
    exact_input: bool,
    ended_early: str | None,
    before: dict[str, float] | None = None,
    after: dict[str, float] | None = None,
) -> LevelRun:
    start_s = max(phase.first_sends_s, default=0.0)
    end_s = phase.duration_s if phase.first_idle_s is None else phase.first_idle_s
    return LevelRun(
        kind="closed",
        concurrency=plan.concurrency,
        records=tuple(sorted(phase.records, key=lambda record: record.index)),
        window_s=(start_s, max(start_s, end_s)),
        duration_s=phase.duration_s,
        client_cpu_s=phase.cpu_s,
        server_before=before or {},
        server_after=after or {},
        input_tokens_asked=plan.input_tokens,
        output_tokens_asked=plan.decoding.output_tokens,
        requests_asked=plan.requests,
        fixed_output=plan.decoding.ignore_eos,
        exact_input=exact_input,
        ended_early=ended_early,
    )


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
