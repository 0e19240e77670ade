"""A load level of a direct engine: all requests handed over at once, and no server between."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice

from sweeper.engine.protocol import BatchJob, BatchRequest, BatchResult
from sweeper.load.decoding import Decoding
from sweeper.load.level import LoadLevel
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord, WarmUp
from sweeper.load.workload.item import WorkItem, Workload


def run_batch(
    measure: Callable[[BatchJob], BatchResult],
    level: LoadLevel,
    workload: Workload,
    *,
    stream: str,
    decoding: Decoding,
    warm_up_requests: int,
    timeout_s: float,
) -> LevelRun:
    """Measure one batch, after one of its own kind to warm up.

    Args:
        measure: of the engine, see `sweeper.engine.protocol.RunningServer`.
        level: of kind ``batch``; its `concurrency` is the size of the batch, and `requests` over it
            the number of batches, which run one after the other.
        workload: what to send.
        stream: name of the level's prompts.
        decoding: of every request.
        warm_up_requests: size of the warm-up batch, 0 for none.
        timeout_s: deadline of a batch.
    """
    warm = list(islice(workload.items(f"{stream}/warm-up-0"), warm_up_requests))
    if warm:
        measure(_job(warm, decoding, timeout_s))
    items = list(islice(workload.items(stream), level.requests))
    size = level.concurrency or len(items)
    records: list[RequestRecord] = []
    counters: dict[str, float] = {}
    at_s, ended_early, cpu_s = 0.0, None, time.process_time()
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        result = measure(_job(batch, decoding, timeout_s))
        records += [
            _record(start + place, item, told, at_s, result.duration_s)
            for place, (item, told) in enumerate(zip(batch, result.requests, strict=True))
        ]
        at_s += result.duration_s
        for name, value in result.counters.items():
            counters[name] = counters.get(name, 0.0) + value
        if result.ended_early is not None:
            ended_early = result.ended_early
            break
    return LevelRun(
        level=level,
        records=tuple(records),
        window_s=(0.0, at_s),
        duration_s=at_s,
        client_cpu_s=time.process_time() - cpu_s,
        server_before=dict.fromkeys(counters, 0.0),
        server_after=counters,
        fixed_output=decoding.ignore_eos,
        exact_input=workload.exact,
        shares_prefix=workload.shares_prefix,
        ended_early=ended_early,
        warm_up=WarmUp(len(warm), 1 if warm else 0),
        beam_width=decoding.beam_width,
    )


def _job(items: list[WorkItem], decoding: Decoding, timeout_s: float) -> BatchJob:
    return BatchJob(
        prompts=[item.prompt for item in items],
        output_tokens=[item.output_tokens for item in items],
        timeout_s=timeout_s,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        top_k=decoding.top_k,
        seed=decoding.seed,
        ignore_eos=decoding.ignore_eos,
    )


def _record(
    index: int, item: WorkItem, told: BatchRequest, at_s: float, duration_s: float
) -> RequestRecord:
    """A request of a batch that started at `at_s`; where the engine tells no time of its end, it
    is the batch's own."""
    finished_s = duration_s if told.finished_s is None else told.finished_s
    first_s = told.first_token_s
    answered = told.error is None
    return RequestRecord(
        index=index,
        scheduled_s=at_s,
        sent_s=at_s,
        first_token_s=None if first_s is None else at_s + first_s,
        finished_s=at_s + finished_s,
        chunks=0 if first_s is None else told.output_tokens or 0,
        prompt_tokens=told.prompt_tokens,
        output_tokens=told.output_tokens,
        outcome=RequestOutcome.OK if answered else RequestOutcome.ERROR,
        finish_reason=told.finish_reason,
        error=told.error,
        input_tokens_asked=item.input_tokens,
        output_tokens_asked=item.output_tokens,
    )
