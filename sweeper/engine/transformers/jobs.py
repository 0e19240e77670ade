"""Requests inside the server, and the board on which their progress is posted.

Everything here is touched by the event loop's thread only; the thread that runs the model hands its
news over with `call_soon_threadsafe`. The one exception is `Job.cancelled`, which is set by the
loop and read by the model's thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Decoding:
    """How a request is decoded.

    Attributes:
        max_tokens: most tokens to write.
        min_tokens: the end of sequence is masked until so many are written.
        ignore_eos: write on after an end of sequence.
        temperature: 0 is greedy.
        top_p, top_k: limits of sampling; 1.0 and 0 for none.
        seed: of sampling, None for none.
        beams: above 1 is beam search, with as many answers.
    """

    max_tokens: int
    min_tokens: int = 0
    ignore_eos: bool = False
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    beams: int = 1

    @property
    def samples(self) -> bool:
        return self.temperature > 0

    def shares_batch_with(self, other: Decoding) -> bool:
        """Whether one call of `generate` can serve both."""
        if self.seed is not None or other.seed is not None or max(self.beams, other.beams) > 1:
            return False
        if not self.samples and not other.samples:
            return True
        mine = (self.temperature, self.top_p, self.top_k)
        return mine == (other.temperature, other.top_p, other.top_k)


@dataclass(eq=False)
class Choice:
    """One answer to a request: its token ids, and why it ended (None while it has not)."""

    written: list[int] = field(default_factory=list)
    finish_reason: str | None = None


@dataclass(eq=False)
class Job:
    """One prompt being completed.

    Attributes:
        prompt: token ids.
        decoding: how.
        events: (number of the choice, new tokens), in order; None after the last.
        choices: what has been written.
        cancelled: nobody waits for it any more.
        error: why it failed, None if it has not.
    """

    prompt: list[int]
    decoding: Decoding
    events: asyncio.Queue[tuple[int, list[int]] | None] = field(default_factory=asyncio.Queue)
    choices: list[Choice] = field(init=False)
    cancelled: bool = False
    error: str | None = None

    def __post_init__(self) -> None:
        self.choices = [Choice() for _ in range(self.decoding.beams)]

    @property
    def is_over(self) -> bool:
        return self.error is not None or all(c.finish_reason is not None for c in self.choices)


@dataclass(frozen=True)
class News:
    """Tokens written for one choice of a job, and its end if this is it."""

    job: Job
    tokens: list[int]
    finish_reason: str | None = None
    choice: int = 0


@dataclass
class Board:
    """Which jobs wait and run, and what `/metrics` counts from the start.

    Attributes:
        waiting, running: jobs by state.
        prompt_tokens, generation_tokens: of jobs that were started.
        finished: requests by their reason.
        drafts, draft_tokens, accepted_tokens: of speculation; None where none is made.
        fatal: set if the model's thread has died; the server then ends.
    """

    waiting: set[Job] = field(default_factory=set)
    running: set[Job] = field(default_factory=set)
    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished: Counter[str] = field(default_factory=Counter)
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    fatal: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, job: Job) -> None:
        self.waiting.add(job)

    def started(self, jobs: Sequence[Job]) -> None:
        """The model has begun with these."""
        for job in jobs:
            if job in self.waiting:
                self.waiting.remove(job)
                self.running.add(job)
                self.prompt_tokens += len(job.prompt)

    def post(self, news: Sequence[News]) -> None:
        """Take in what a step of the model has written."""
        for item in news:
            choice = item.job.choices[item.choice]
            choice.written += item.tokens
            choice.finish_reason = item.finish_reason
            self.generation_tokens += len(item.tokens)
            item.job.events.put_nowait((item.choice, item.tokens))
            if item.job.is_over:
                self.finished[item.finish_reason or ""] += 1
                self._close(item.job)

    def drafted(self, drafts: int, tokens: int, accepted: int) -> None:
        """Count what speculation did in a call."""
        self.drafts = (self.drafts or 0) + drafts
        self.draft_tokens = (self.draft_tokens or 0) + tokens
        self.accepted_tokens = (self.accepted_tokens or 0) + accepted

    def drop(self, job: Job) -> None:
        """Its client has gone, or has all it wanted."""
        if not job.is_over:
            job.cancelled = True
            self.finished["abort"] += 1
        self.waiting.discard(job)
        self.running.discard(job)

    def fail(self, jobs: Sequence[Job], message: str) -> None:
        for job in jobs:
            job.error = message
            self._close(job)

    def break_down(self, message: str) -> None:
        """The model's thread has died: every job fails, and the server ends."""
        self.fail([*self.waiting, *self.running], message)
        self.fatal.set()

    def _close(self, job: Job) -> None:
        self.waiting.discard(job)
        self.running.discard(job)
        job.events.put_nowait(None)
