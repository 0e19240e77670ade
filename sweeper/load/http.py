"""The few HTTP calls that `load` and `quality` share. aiohttp is imported when first used."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sweeper.errors import SweeperError
from sweeper.load.address import ServerAddress
from sweeper.load.stream import error_message, one_line

if TYPE_CHECKING:
    import aiohttp

# Below the five seconds after which uvicorn drops an idle connection: a request sent on a
# connection that the server is just closing would count as a failure of the server.
_KEEPALIVE_S = 3.0
MAX_ANSWER_BYTES = 1 << 26
"""Above any answer; a server that writes without end is broken."""
_READ_BYTES = 1 << 16


class RequestFailedError(SweeperError):
    """A request that was not answered as it should be.

    Attributes:
        status: HTTP status, None if there was no answer at all.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message, "read the server's log; check that it is up and serves the model")
        self.status = status


@asynccontextmanager
async def open_session(
    address: ServerAddress, timeout_s: float | None
) -> AsyncIterator[aiohttp.ClientSession]:
    """A session without a limit on connections, so that the client never holds a request back.

    Args:
        address: the server; its key is sent with every request.
        timeout_s: deadline of each request from send to last byte, None for none.
    """
    import aiohttp

    headers = {"Authorization": f"Bearer {address.api_key}"} if address.api_key else {}
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        headers=headers,
        trust_env=False,  # a proxy between client and server would be measured too
    ) as session:
        yield session


async def post_json(
    session: aiohttp.ClientSession, url: str, body: dict[str, Any]
) -> dict[str, Any]:
    """POST `body` and return the JSON object that is answered.

    Raises:
        RequestFailedError: no answer in time, a status other than 200, or no JSON object.
    """
    import aiohttp

    try:
        async with session.post(url, json=body, allow_redirects=False) as response:
            text = await read_text(response)
            if response.status != 200:
                message = f"HTTP {response.status}: {explain(text)}"
                raise RequestFailedError(message, response.status)
    except TimeoutError as error:
        raise RequestFailedError(f"no answer from {url} in time") from error
    except (aiohttp.ClientError, OSError) as error:
        raise RequestFailedError(f"{url}: {describe(error)}") from error
    return _json_object(text, url)


async def read_text(response: aiohttp.ClientResponse) -> str:
    """The body of an answer; bytes that are no UTF-8 are replaced.

    Raises:
        OSError: it is longer than `MAX_ANSWER_BYTES`.
        aiohttp.ClientError: it broke off.
    """
    body = bytearray()
    async for part in response.content.iter_chunked(_READ_BYTES):
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise OSError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
    return body.decode("utf-8", errors="replace")


def explain(body: str) -> str:
    """One line from the body of a failed answer, without echoing the request."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return one_line(body) or "no message"
    if not isinstance(data, dict):
        return "no message"
    detail = data.get("detail")  # a list of objects would echo the request
    return error_message(data) or (one_line(detail) if isinstance(detail, str) else "no message")


def describe(error: BaseException) -> str:
    """One line for an exception: its class and, if it has one, its message."""
    text = one_line(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _json_object(text: str, url: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestFailedError(f"{url} did not answer with JSON") from error
    if not isinstance(data, dict):
        raise RequestFailedError(f"{url} did not answer with a JSON object")
    return data
