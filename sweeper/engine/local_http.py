"""Plain HTTP from the tuner to a server. Proxies from the environment are not asked.

Our own servers are on this machine and known by their port (`Endpoint`); a server that somebody
else started is known by its address.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sweeper.engine.ports import LOOPBACK

MAX_REPLY_BYTES = 1 << 26
"""Above any answer that is one; a server that writes without end is broken."""
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Endpoint:
    """Where a server of ours answers, and as what.

    Attributes:
        port: TCP port on 127.0.0.1.
        served_name: the model's name in requests.
        api_key: bearer token.
    """

    port: int
    served_name: str
    api_key: str = field(repr=False)

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


@dataclass(frozen=True)
class Reply:
    """Status, body and headers (names in lower case) of an HTTP answer."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is none."""
        try:
            return json.loads(self.text)
        except RecursionError:
            raise ValueError("JSON that is nested too deeply") from None


def call(
    endpoint: Endpoint, path: str, body: Mapping[str, Any] | None = None, *, timeout_s: float
) -> Reply:
    """GET a path of a server of ours, or POST a JSON body to it. See `call_url`."""
    return call_url(endpoint.base_url, path, body, api_key=endpoint.api_key, timeout_s=timeout_s)


def call_url(
    base_url: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    api_key: str | None,
    timeout_s: float,
) -> Reply:
    """GET a path below an ``http`` or ``https`` address, or POST a JSON body to it.

    Redirections are answers, and are not followed: the key would go where it was not meant for.

    Args:
        base_url: address, with a path of its own or without.
        path: begins with a slash.
        body: None for GET.
        api_key: bearer token, None or empty for none.
        timeout_s: for the whole exchange; until the head of the answer, for every wait on it.

    Raises:
        OSError: no connection, an untrusted certificate, no answer in time, or one without end.
        http.client.HTTPException: what came back is no HTTP.
    """
    address = urlsplit(base_url)
    deadline = time.monotonic() + timeout_s
    connection = _connection(address.scheme, address.hostname or "", address.port, timeout_s)
    headers = {"Connection": "close"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    try:
        target = address.path.rstrip("/") + path
        if body is None:
            connection.request("GET", target, headers=headers)
        else:
            headers["Content-Type"] = "application/json"
            connection.request("POST", target, json.dumps(body), headers)
        answer = connection.getresponse()
        text = _body(connection, answer, deadline).decode("utf-8", errors="replace")
        return Reply(answer.status, text, {k.lower(): v for k, v in answer.getheaders()})
    finally:
        connection.close()


def _body(
    connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, deadline: float
) -> bytes:
    """All of an answer, unless it comes too slowly or has no end."""
    parts = bytearray()
    while part := answer.read1(_READ_BYTES):
        parts += part
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer had no end in time")
        if len(parts) > MAX_REPLY_BYTES:
            raise OSError(f"the answer is longer than {MAX_REPLY_BYTES} bytes")
        if connection.sock is not None:
            connection.sock.settimeout(left_s)
    if answer.length:
        raise http.client.IncompleteRead(bytes(parts[:100]), answer.length)
    return bytes(parts)


def _connection(
    scheme: str, host: str, port: int | None, timeout_s: float
) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s)
    return http.client.HTTPConnection(host, port, timeout=timeout_s)
