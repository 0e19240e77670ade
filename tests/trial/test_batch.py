"""Batches of a direct engine become a level like any other."""

from __future__ import annotations

from sweeper.engine.protocol import BatchJob, BatchRequest, BatchResult
from sweeper.load.decoding import Decoding
from sweeper.load.level import LoadLevel
from sweeper.load.records import LevelRun, RequestOutcome
from sweeper.metrics.summary import summarise
from sweeper.trial.batch import run_batch
from tests.load.work import NumberedWork


class Engine:
    """Answers a batch in a second, or says why it does not."""

    def __init__(self, *, tells_times: bool = True, dies_in_batch: int | None = None) -> None:
        self.jobs: list[BatchJob] = []
        self.tells_times = tells_times
        self.dies_in_batch = dies_in_batch

    def measure(self, job: BatchJob) -> BatchResult:
        self.jobs.append(job)
        if self.dies_in_batch == len(self.jobs):
            gone = BatchRequest(None, None, error="the worker died")
            return BatchResult((gone,) * len(job.prompts), 0.5, ended_early="the worker died")
        first, end = (0.2, 1.0) if self.tells_times else (None, None)
        requests = tuple(
            BatchRequest(len(prompt), tokens, first, end, "length")
            for prompt, tokens in zip(job.prompts, job.output_tokens, strict=True)
        )
        written = float(sum(job.output_tokens))
        return BatchResult(requests, 1.0, {"vllm:generation_tokens_total": written})


def run(engine: Engine, *, size: int = 4, requests: int = 8, warm: int = 0) -> LevelRun:
    return run_batch(
        engine.measure,
        LoadLevel("batch", requests, concurrency=size),
        NumberedWork(),
        stream="s",
        decoding=Decoding(temperature=0.3, seed=7),
        warm_up_requests=warm,
        timeout_s=9.0,
    )


def test_requests_go_in_batches_of_the_levels_size() -> None:
    engine = Engine()
    driven = run(engine, warm=4)
    assert [len(job.prompts) for job in engine.jobs] == [4, 4, 4], "the first warms up"
    assert (engine.jobs[0].temperature, engine.jobs[0].seed, engine.jobs[0].timeout_s) == (
        0.3,
        7,
        9,
    )
    prompts = [tuple(prompt) for job in engine.jobs for prompt in job.prompts]
    assert len(set(prompts)) == 12
    assert [record.index for record in driven.records] == list(range(8))
    assert [record.sent_s for record in driven.records] == [0.0] * 4 + [1.0] * 4
    assert driven.duration_s == 2.0 and driven.warm_up.requests == 4


def test_throughput_is_tokens_by_the_engines_own_time() -> None:
    summary = summarise([run(Engine())], device_count=1)
    assert summary.valid, summary.reasons
    assert summary.metrics["output_tokens_per_s"] == 8 * 5 / 2.0
    assert summary.load["kind"] == "batch"


def test_an_engine_without_times_has_no_ttft() -> None:
    summary = summarise([run(Engine(tells_times=False))], device_count=1)
    assert summary.valid, summary.reasons
    assert summary.metrics["output_tokens_per_s"] == 8 * 5 / 2.0
    assert not [name for name in summary.metrics if name.startswith(("ttft", "tpot"))]


def test_an_engine_that_dies_ends_the_level() -> None:
    driven = run(Engine(dies_in_batch=2))
    assert driven.ended_early == "the worker died"
    assert [record.outcome for record in driven.records].count(RequestOutcome.ERROR) == 4
    assert not summarise([driven], device_count=1).valid
