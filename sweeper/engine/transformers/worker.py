"""The thread that runs the model with `generate`: one request at a time, or in static batches."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sweeper.engine.transformers.deployment import Deployment
from sweeper.engine.transformers.generating import generate
from sweeper.engine.transformers.jobs import Board, Job, News
from sweeper.engine.transformers.loading import LoadedModel
from sweeper.engine.transformers.scoring import Scores, prompt_logprobs


class Worker(Protocol):
    """What runs the model. All methods are called from the event loop's thread."""

    def start(self) -> None:
        """Begin; the event loop runs."""
        ...

    def refusal(self, job: Job) -> str | None:
        """Why this worker cannot decode a request as asked; None if it can."""
        ...

    def submit(self, job: Job) -> None:
        """Complete a prompt; its progress is posted on the board."""
        ...

    def cancel(self, job: Job) -> None:
        """Stop a job whose client has gone."""
        ...

    async def score(self, ids: list[int], top: int) -> Scores:
        """Rate the tokens of a prompt, see `prompt_logprobs`."""
        ...

    def effective(self) -> dict[str, Any]:
        """Arguments in effect that only the worker knows."""
        ...


@dataclass
class _Scoring:
    """A prompt to be rated."""

    ids: list[int]
    top: int
    answer: asyncio.Future[Scores] = field(repr=False)


class GenerateWorker:
    """Runs `generate` for batches of up to `deployment.batch_limit` requests.

    Args:
        loaded: the model.
        deployment: batching and speculation.
        board: told of all progress.
    """

    def __init__(self, loaded: LoadedModel, deployment: Deployment, board: Board) -> None:
        self._loaded = loaded
        self._deployment = deployment
        self._board = board
        self._queue: deque[Job | _Scoring] = deque()
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drafts = DraftCounter(loaded.model) if deployment.speculative == "ngram" else None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, daemon=True, name="model").start()

    def refusal(self, job: Job) -> str | None:
        if job.decoding.beams > 1 and self._deployment.batching != "none":
            return "beam search needs batching=none"
        if job.decoding.beams > 1 and job.decoding.samples:
            return "beam search does not sample: temperature must be 0"
        return None

    def submit(self, job: Job) -> None:
        with self._changed:
            self._queue.append(job)
            self._changed.notify()

    def cancel(self, job: Job) -> None:
        # A waiting one is passed over when its turn comes, a running one ends with its next step.
        job.cancelled = True

    async def score(self, ids: list[int], top: int) -> Scores:
        answer: asyncio.Future[Scores] = asyncio.get_running_loop().create_future()
        with self._changed:
            self._queue.append(_Scoring(ids, top, answer))
            self._changed.notify()
        return await answer

    def effective(self) -> dict[str, Any]:
        known: dict[str, Any] = {"max_num_seqs": self._deployment.batch_limit}
        if self._deployment.batching == "static":
            known["batch_wait_ms"] = self._deployment.batch_wait_ms
        if self._deployment.speculative != "none":
            known["num_speculative_tokens"] = self._deployment.num_speculative_tokens
            known["prompt_lookup_max"] = self._deployment.prompt_lookup_max
        return {name: value for name, value in known.items() if value is not None}

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(function, *args)

    def _run(self) -> None:
        try:
            while True:
                work = self._next()
                if isinstance(work, _Scoring):
                    self._score(work)
                else:
                    self._complete(work)
        except Exception as problem:  # the model cannot go on: the server ends, its log says why
            traceback.print_exc()
            self._call(self._board.break_down, f"{type(problem).__name__}: {problem}")

    def _score(self, work: _Scoring) -> None:
        scores = prompt_logprobs(self._loaded.model, work.ids, work.top, self._loaded.tokenizer)
        self._call(_answer, work.answer, scores)

    def _complete(self, jobs: list[Job]) -> None:
        self._call(self._board.started, jobs)
        streamer = generate(self._loaded, self._deployment, jobs, self._tell)
        if self._drafts is not None and self._drafts.works:
            drafts, tokens = self._drafts.take()
            self._call(self._board.drafted, drafts, tokens, streamer.accepted)

    def _tell(self, news: list[News]) -> None:
        if news:
            self._call(self._board.post, news)

    def _next(self) -> _Scoring | list[Job]:
        """The next prompt to rate, or the next batch."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: bool(self._queue))
                first = self._queue.popleft()
                if isinstance(first, _Scoring):
                    return first
                if not first.cancelled:
                    return [first, *self._companions(first)]

    def _companions(self, first: Job) -> list[Job]:
        """Requests that run along with the first, waited for as long as the deployment says."""
        room = self._deployment.batch_limit - 1
        if room == 0:
            return []
        deadline = time.monotonic() + self._deployment.batch_wait_ms / 1e3
        while len(found := self._fitting(first)) < room:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)
        chosen = found[:room]
        for job in chosen:
            self._queue.remove(job)
        return chosen

    def _fitting(self, first: Job) -> list[Job]:
        return [
            job
            for job in self._queue
            if isinstance(job, Job)
            and not job.cancelled
            and job.decoding.shares_batch_with(first.decoding)
        ]


class DraftCounter:
    """Counts what n-gram lookup drafts, which the library tells nobody.

    The method it hooks into is not public: where a version lacks it, nothing is counted.
    """

    def __init__(self, model: Any) -> None:
        self.drafts = 0
        self.tokens = 0
        self.works = hasattr(model, "_get_candidate_generator")
        if self.works:
            make = model._get_candidate_generator
            model._get_candidate_generator = lambda *a, **k: self._watched(make(*a, **k))

    def _watched(self, generator: Any) -> Any:
        draft = generator.get_candidates

        def counted(input_ids: Any, *args: Any, **kwargs: Any) -> Any:
            candidates, *rest = draft(input_ids, *args, **kwargs)
            length = candidates.shape[1] - input_ids.shape[1]
            self.drafts += length > 0
            self.tokens += length
            return (candidates, *rest)

        generator.get_candidates = counted
        return generator

    def take(self) -> tuple[int, int]:
        """Drafts and drafted tokens since the last call."""
        counted = self.drafts, self.tokens
        self.drafts = self.tokens = 0
        return counted


def _answer(future: asyncio.Future[Scores], scores: Scores) -> None:
    if not future.done():
        future.set_result(scores)
