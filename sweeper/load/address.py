"""Where a server is and what it calls its model: all that `load` and `quality` know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweeper.engine.protocol import RunningServer


@dataclass(frozen=True)
class ServerAddress:
    """An OpenAI-compatible server.

    Attributes:
        base_url: ``http://127.0.0.1:PORT``, without a trailing ``/v1``.
        model: value for ``model`` in requests.
        api_key: bearer token, or None if the server asks for none.
    """

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, server: RunningServer) -> ServerAddress:
        return cls(server.base_url, server.served_name, server.api_key or None)

    def url(self, path: str) -> str:
        """Absolute URL of `path`, which starts with a slash."""
        return self.base_url.rstrip("/") + path
