"""A streaming client for ``POST /v1/completions`` that turns every end into a record.

No prompt and no output text outlives the request that carries it, unless the caller asks to be
given it (a conversation needs the answer for its next turn).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from sweeper.load.address import ServerAddress
from sweeper.load.http import describe, explain, open_session
from sweeper.load.records import RequestOutcome, RequestRecord
from sweeper.load.stream import StreamState
from sweeper.load.whole import WholeAnswer
from sweeper.load.wire import Wire
from sweeper.load.workload.item import WorkItem


@dataclass(frozen=True)
class Outgoing:
    """One request, ready to be sent. Times are seconds from the level's start.

    Attributes:
        index: number within the level.
        item: what is asked.
        body: encoded, see `sweeper.load.decoding.Decoding.body`.
        epoch_s: `time.perf_counter` at the level's start.
        scheduled_s: when it is due; None if it is due when it is sent.
        keep_text: whether the output's text is wanted.
        streamed: whether the answer comes as a stream of events.
    """

    index: int
    item: WorkItem
    body: bytes
    epoch_s: float
    scheduled_s: float | None = None
    keep_text: bool = False
    streamed: bool = True


@dataclass(frozen=True)
class Answer:
    """The record of a request, and its output if that was wanted."""

    record: RequestRecord
    text: str | None = None


@dataclass
class Cut:
    """Why requests in flight are being cut off: set before their tasks are cancelled."""

    reason: str | None = None
    outcome: RequestOutcome = RequestOutcome.ERROR


@dataclass
class Client:
    """Requests to one server, over one session.

    Args:
        base_url: ``http://127.0.0.1:PORT``.
        model: value for ``model``.
        api_key: bearer token, or None.
        request_timeout_s: deadline of a request from send to last byte.
        cut: if its reason is set, a cancelled request is recorded with it instead of raising.

    Attributes:
        in_flight: answers that are being read.
        answered: requests that have ended well.
    """

    base_url: str
    model: str
    api_key: str | None = field(repr=False)
    request_timeout_s: float
    cut: Cut = field(default_factory=Cut)
    in_flight: set[StreamState] = field(default_factory=set)
    answered: int = 0

    async def __aenter__(self) -> Client:
        address = ServerAddress(self.base_url, self.model, self.api_key)
        self._stack = AsyncExitStack()
        self.session = await self._stack.enter_async_context(
            open_session(address, self.request_timeout_s)
        )
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        wire = Wire(address.url("/v1/completions"), headers)
        self._wire = await self._stack.enter_async_context(wire)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def complete(self, request: Outgoing) -> Answer:
        """Send one request and follow its stream to the end.

        Returns:
            A record, whatever happens; only a cancellation without `cut.reason` is raised.
        """
        state = _state(request)
        outcome: RequestOutcome | None = None
        error: str | None = None
        self.in_flight.add(state)
        sent_s = time.perf_counter()
        try:
            status, message = await self._follow(request.body, state)
            if status != 200:
                outcome, error = RequestOutcome.ERROR, f"HTTP {status}: {message}"
        except TimeoutError:
            outcome = RequestOutcome.TIMEOUT
            error = f"no end within {self.request_timeout_s:g} s"
        except OSError as failure:
            outcome, error = RequestOutcome.ERROR, describe(failure)
        except asyncio.CancelledError:
            if self.cut.reason is None:
                raise
            outcome, error = self.cut.outcome, self.cut.reason
        finally:
            self.in_flight.discard(state)
        ended_s = time.perf_counter()
        if outcome is None or (state.done_s is not None and state.error is None):
            outcome, error = state.verdict()  # what comes after [DONE] is no matter of the request
        self.answered += outcome is RequestOutcome.OK
        record = _record(
            request, state, sent_s=sent_s, ended_s=ended_s, outcome=outcome, error=error
        )
        return Answer(record, state.text)

    async def _follow(self, body: bytes, state: StreamState) -> tuple[int, str]:
        async with asyncio.timeout(self.request_timeout_s):
            status, text = await self._wire.post(body, state.feed)
        if status != 200:
            return status, explain(text.decode(errors="replace"))
        state.close(time.perf_counter())
        return 200, ""


def _state(request: Outgoing) -> StreamState:
    if request.streamed:
        return StreamState(keep_text=request.keep_text)
    return WholeAnswer(request.item.output_tokens, keep_text=request.keep_text)


def _record(
    request: Outgoing,
    state: StreamState,
    *,
    sent_s: float,
    ended_s: float,
    outcome: RequestOutcome,
    error: str | None,
) -> RequestRecord:
    first, epoch_s, item = state.first_token_s, request.epoch_s, request.item
    finished_s = ended_s if state.done_s is None else state.done_s
    due_s = request.scheduled_s
    return RequestRecord(
        index=request.index,
        scheduled_s=sent_s - epoch_s if due_s is None else due_s,
        sent_s=sent_s - epoch_s,
        first_token_s=None if first is None else first - epoch_s,
        finished_s=finished_s - epoch_s,
        chunks=state.chunks,
        prompt_tokens=state.prompt_tokens,
        output_tokens=state.output_tokens,
        outcome=outcome,
        finish_reason=state.finish_reason,
        error=error,
        input_tokens_asked=item.input_tokens,
        output_tokens_asked=item.output_tokens,
        turn=item.turn,
    )
