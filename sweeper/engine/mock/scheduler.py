"""Continuous batching on the imaginary device: requests wait, prefill, decode, are preempted."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from dataclasses import dataclass, field

from sweeper.engine.mock.language import CONTEXT, Language, Writing
from sweeper.engine.mock.machine import Machine


@dataclass(eq=False)
class Sequence:
    """One prompt being completed.

    Attributes:
        prompt: token ids.
        max_tokens: most tokens to write.
        min_tokens: fewest, before the model may end its answer.
        ignore_eos: never end before `max_tokens`.
        events: lists of new tokens, in order; None after the last.
    """

    prompt: list[int]
    max_tokens: int
    min_tokens: int = 0
    ignore_eos: bool = False
    events: asyncio.Queue[list[int] | None] = field(default_factory=asyncio.Queue)
    written: list[int] = field(default_factory=list)
    in_cache: int = 0
    finish_reason: str | None = None

    @property
    def to_prefill(self) -> int:
        """Tokens whose KV entries are still missing."""
        return len(self.prompt) + len(self.written) - self.in_cache


@dataclass
class Counters:
    """What `/metrics` tells, counted from the start."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    requests: int = 0


class Scheduler:
    """The imaginary engine's loop. One instance a server, on one event loop."""

    def __init__(
        self, machine: Machine, language: Language, writing: Writing | None = None
    ) -> None:
        self.machine = machine
        self.language = language
        self.writing = Writing() if writing is None else writing
        self.counters = Counters()
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._wake = asyncio.Event()
        self._prefixes: set[int] = set()

    @property
    def kv_tokens_used(self) -> int:
        return sum(sequence.in_cache for sequence in self.running)

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache in use."""
        return min(1.0, self.kv_tokens_used / max(1, self.machine.kv_tokens))

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)
        self._wake.set()

    def abort(self, sequence: Sequence) -> None:
        """Forget a request whose client has gone."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        if sequence in self.running:
            self.running.remove(sequence)

    async def run(self) -> None:
        """Step while there is work; never returns."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            if not self.waiting and not self.running:
                self._wake.clear()
                await self._wake.wait()
                due = clock()
            self._admit()
            prefilling = self._prefill()
            decoding = [s for s in self.running if s not in prefilling and not s.to_prefill]
            step_s = self.machine.step_s(len(decoding), sum(prefilling.values()))
            # Steps follow one another on the imaginary device's clock, not on this process's.
            due = max(due + step_s, clock() - 0.05)
            await asyncio.sleep(max(0.0, due - clock()))
            for sequence in decoding:
                self._write(sequence, 1 + self._accepted(sequence))
            for sequence in prefilling:
                if not sequence.to_prefill:
                    self._write(sequence, 1)

    def _admit(self) -> None:
        while (
            self.waiting
            and len(self.running) < self.machine.max_num_seqs * self.machine.data_parallel
        ):
            first = self.waiting[0]
            needed = len(first.prompt) + len(first.written) + 1
            if self.running and self.kv_tokens_used + needed > self.machine.kv_tokens:
                return
            self.running.append(self.waiting.popleft())
            if not first.written:
                self.counters.prompt_tokens += len(first.prompt)
                self._reuse_prefix(first)

    def _reuse_prefix(self, sequence: Sequence) -> None:
        """Take whole blocks from earlier prompts that began the same."""
        if not self.machine.prefix_caching:
            return
        size = self.machine.block_size
        self.counters.prefix_queries += len(sequence.prompt)
        seen, code, hits = True, 0, 0
        for start in range(0, len(sequence.prompt) - size + 1, size):
            code = zlib.crc32(repr((code, sequence.prompt[start : start + size])).encode())
            seen = seen and code in self._prefixes
            hits += size if seen else 0
            self._prefixes.add(code)
        hits = min(hits, len(sequence.prompt) - 1)
        self.counters.prefix_hits += hits
        sequence.in_cache = hits

    def _prefill(self) -> dict[Sequence, int]:
        """Prompt tokens of this step, by request."""
        budget = self.machine.max_num_batched_tokens
        chosen: dict[Sequence, int] = {}
        for sequence in self.running:
            missing = sequence.to_prefill
            if missing <= 0 or budget <= 0:
                continue
            if missing > budget and not self.machine.chunked_prefill and chosen:
                continue
            part = min(missing, budget) if self.machine.chunked_prefill else missing
            sequence.in_cache += part
            chosen[sequence] = part
            budget -= part
        return chosen

    def _accepted(self, sequence: Sequence) -> int:
        """Draft tokens of this step that the model accepts."""
        drafts = self.machine.drafts
        accepted = 0
        place = len(sequence.written)
        while accepted < drafts:
            draw = zlib.crc32(repr((sequence.prompt[:CONTEXT], place, accepted)).encode()) / 2**32
            if draw >= self.machine.acceptance:
                break
            accepted += 1
        self.counters.draft_tokens += drafts
        self.counters.accepted_tokens += accepted
        return accepted

    def _write(self, sequence: Sequence, count: int) -> None:
        if sequence not in self.running:
            return
        tokens: list[int] = []
        while len(tokens) < count and sequence.finish_reason is None:
            context = (sequence.prompt[-CONTEXT:] + sequence.written)[-CONTEXT:]
            running = len(self.running)
            tokens.append(self.writing.next_token(self.language, context, running))
            sequence.written.append(tokens[-1])
            sequence.finish_reason = self._finish(sequence)
        self.counters.generation_tokens += len(tokens)
        sequence.in_cache = len(sequence.prompt) + len(sequence.written)
        sequence.events.put_nowait(tokens)
        if sequence.finish_reason is not None:
            self.running.remove(sequence)
            self.counters.requests += 1
            sequence.events.put_nowait(None)
        elif self.kv_tokens_used > self.machine.kv_tokens and len(self.running) > 1:
            self._preempt()

    def _finish(self, sequence: Sequence) -> str | None:
        if len(sequence.written) >= sequence.max_tokens:
            return "length"
        early = not sequence.ignore_eos and len(sequence.written) >= sequence.min_tokens
        return "stop" if early and self.language.ends(sequence.written) else None

    def _preempt(self) -> None:
        """The latest request gives up its KV cache and computes it again later."""
        victim = self.running.pop()
        victim.in_cache = 0
        self.waiting.appendleft(victim)
        self.counters.preemptions += 1
