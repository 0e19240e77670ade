"""Plain HTTP to a server on this machine. Proxies from the environment are not asked."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.engine.ports import LOOPBACK


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
    api_key: str

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


@dataclass(frozen=True)
class Reply:
    """Status and body of an HTTP answer."""

    status: int
    text: str

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is none."""
        return json.loads(self.text)


def call(
    endpoint: Endpoint, path: str, body: Mapping[str, Any] | None = None, *, timeout_s: float
) -> Reply:
    """GET a path, or POST a JSON body to it.

    Raises:
        OSError: no connection, or no answer in time.
        http.client.HTTPException: what came back is no HTTP.
    """
    connection = http.client.HTTPConnection(LOOPBACK, endpoint.port, timeout=timeout_s)
    headers = {"Authorization": f"Bearer {endpoint.api_key}", "Connection": "close"}
    try:
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            headers["Content-Type"] = "application/json"
            connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        return Reply(answer.status, answer.read().decode("utf-8", errors="replace"))
    finally:
        connection.close()
