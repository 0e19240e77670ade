"""A streaming client for ``POST /v1/completions`` that turns every end into a record.

No prompt and no output text outlives the request that carries it.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from sweeper.load.address import ServerAddress
from sweeper.load.http import describe, explain, open_session
from sweeper.load.prompts import Prompt
from sweeper.load.records import RequestOutcome, RequestRecord
from sweeper.load.stream import StreamState


@dataclass(frozen=True)
class Decoding:
    """What every request of a level asks for beside its prompt.

    Attributes:
        output_tokens: tokens to write; exactly these if `ignore_eos`.
        temperature: 0 is greedy.
        ignore_eos: write on after an end-of-sequence token.
        seed: sampling seed; None sends none. At a temperature above 0 a seed a request makes vLLM
            leave its fast sampler, so it is not set by default.
    """

    output_tokens: int
    temperature: float = 0.0
    ignore_eos: bool = True
    seed: int | None = None

    def body(self, model: str, prompt: Prompt) -> bytes:
        """The request, encoded."""
        fields: dict[str, Any] = {
            "model": model,
            "prompt": prompt,
            "max_tokens": self.output_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.ignore_eos:
            # min_tokens masks the end of sequence, ignore_eos writes on where a model stops by
            # other means; special tokens are kept because a hidden one would be an empty chunk
            # and delay the first content.
            fields |= {
                "ignore_eos": True,
                "min_tokens": self.output_tokens,
                "skip_special_tokens": False,
            }
        if self.seed is not None:
            fields["seed"] = self.seed
        return json.dumps(fields, separators=(",", ":")).encode()


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
    """

    base_url: str
    model: str
    api_key: str | None = field(repr=False)
    request_timeout_s: float
    cut: Cut = field(default_factory=Cut)

    async def __aenter__(self) -> Client:
        address = ServerAddress(self.base_url, self.model, self.api_key)
        self._url = address.url("/v1/completions")
        self._stack = AsyncExitStack()
        self.session = await self._stack.enter_async_context(
            open_session(address, self.request_timeout_s)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def complete(self, index: int, body: bytes, epoch_s: float) -> RequestRecord:
        """Send one request and follow its stream to the end.

        Args:
            index: number within the level.
            body: from `Decoding.body`.
            epoch_s: `time.perf_counter` at the start of the level.

        Returns:
            A record, whatever happens; only a cancellation without `cut.reason` is raised.
        """
        import aiohttp

        state = StreamState()
        outcome: RequestOutcome | None = None
        error: str | None = None
        sent_s = time.perf_counter()
        try:
            status, message = await self._follow(body, state)
            if status != 200:
                outcome, error = RequestOutcome.ERROR, f"HTTP {status}: {message}"
        except TimeoutError:
            outcome = RequestOutcome.TIMEOUT
            error = f"no end within {self.request_timeout_s:g} s"
        except (aiohttp.ClientError, OSError) as failure:
            outcome, error = RequestOutcome.ERROR, describe(failure)
        except asyncio.CancelledError:
            if self.cut.reason is None:
                raise
            outcome, error = self.cut.outcome, self.cut.reason
        ended_s = time.perf_counter()
        if outcome is None or (state.done_s is not None and state.error is None):
            outcome, error = state.verdict()  # what comes after [DONE] is no matter of the request
        return _record(
            index,
            state,
            sent_s=sent_s,
            ended_s=ended_s,
            epoch_s=epoch_s,
            outcome=outcome,
            error=error,
        )

    async def _follow(self, body: bytes, state: StreamState) -> tuple[int, str]:
        headers = {"Content-Type": "application/json"}
        async with self.session.post(self._url, data=body, headers=headers) as response:
            if response.status != 200:
                return response.status, explain(await response.text())
            async for piece in response.content.iter_any():
                state.feed(piece, time.perf_counter())
                if state.error is not None:
                    break
            state.close(time.perf_counter())
            return 200, ""


def _record(
    index: int,
    state: StreamState,
    *,
    sent_s: float,
    ended_s: float,
    epoch_s: float,
    outcome: RequestOutcome,
    error: str | None,
) -> RequestRecord:
    first = state.first_token_s
    finished_s = ended_s if state.done_s is None else state.done_s
    return RequestRecord(
        index=index,
        scheduled_s=sent_s - epoch_s,
        sent_s=sent_s - epoch_s,
        first_token_s=None if first is None else first - epoch_s,
        finished_s=finished_s - epoch_s,
        chunks=state.chunks,
        prompt_tokens=state.prompt_tokens,
        output_tokens=state.output_tokens,
        outcome=outcome,
        finish_reason=state.finish_reason,
        error=error,
    )
