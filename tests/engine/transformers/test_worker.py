"""The model's thread: which requests it takes together, and what happens when it dies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sweeper.engine.transformers import worker as worker_module
from sweeper.engine.transformers.deployment import Deployment
from sweeper.engine.transformers.jobs import Board, Decoding, Job, News
from sweeper.engine.transformers.loading import LoadedModel
from sweeper.engine.transformers.metrics import exposition
from sweeper.engine.transformers.worker import GenerateWorker

LOADED = LoadedModel(None, None, "cpu", (1,), 0, 100, 64, 0.0, 0.0, False)
GREEDY = Decoding(4)


class Model:
    """Stands in for `generate`: notes its batches and ends each at once."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.batches: list[list[int]] = []
        self.failure = failure

    def __call__(self, loaded: Any, deployment: Any, jobs: list[Job], tell: Any) -> Any:
        self.batches.append([job.prompt[0] for job in jobs])
        if self.failure is not None:
            raise self.failure
        tell([News(job, [7] * job.decoding.max_tokens, "length") for job in jobs])


async def run(
    monkeypatch: pytest.MonkeyPatch, model: Model, deployment: Deployment, jobs: list[Job]
) -> Board:
    """All jobs submitted before the thread starts, and their ends awaited."""
    monkeypatch.setattr(worker_module, "generate", model)
    board = Board()
    worker = GenerateWorker(LOADED, deployment, board)
    for job in jobs:
        board.add(job)
        worker.submit(job)
    worker.start()
    for job in jobs:
        while not job.cancelled and await asyncio.wait_for(job.events.get(), 10) is not None:
            pass
    return board


STATIC = Deployment(batching="static", max_num_seqs=3, batch_wait_ms=50)


async def test_one_at_a_time_in_the_order_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    board = await run(monkeypatch, model, Deployment(), [Job([n], GREEDY) for n in range(3)])
    assert model.batches == [[0], [1], [2]]
    assert (board.prompt_tokens, board.generation_tokens) == (3, 12)
    assert board.finished == {"length": 3}


async def test_a_static_batch_takes_what_waits_up_to_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model()
    await run(monkeypatch, model, STATIC, [Job([n], GREEDY) for n in range(5)])
    assert model.batches == [[0, 1, 2], [3, 4]]


async def test_only_requests_decoded_alike_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    kinds = [GREEDY, Decoding(4, temperature=0.5), Decoding(9), Decoding(4, seed=1), GREEDY]
    await run(monkeypatch, model, STATIC, [Job([n], kind) for n, kind in enumerate(kinds)])
    assert model.batches == [[0, 2, 4], [1], [3]]


async def test_a_client_that_has_gone_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    jobs = [Job([n], GREEDY) for n in range(4)]
    jobs[0].cancelled = jobs[2].cancelled = True
    await run(monkeypatch, model, STATIC, jobs)
    assert model.batches == [[1, 3]]


async def test_when_the_model_dies_every_request_fails_and_the_server_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Model(MemoryError("CUDA out of memory"))
    jobs = [Job([n], GREEDY) for n in range(2)]
    board = await run(monkeypatch, model, Deployment(), jobs)
    assert [job.error for job in jobs] == ["MemoryError: CUDA out of memory"] * 2
    assert board.fatal.is_set()
    assert not board.running
    assert not board.waiting
    assert "Traceback" in capsys.readouterr().err


def test_metrics_leave_out_what_is_not_there() -> None:
    board = Board()
    assert "spec_decode" not in exposition(board, "m")
    board.drafted(2, 6, 4)
    text = exposition(board, "m")
    assert 'vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 4.0' in text
    assert "kv_cache_usage" not in text
