"""What a worker says: lines of a pipe, read without ever waiting long, and events out of them."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Mapping
from typing import Any

from sweeper.redaction import printable_data, redact_data

MAX_LINE_BYTES = 1 << 20
"""A longer line is none of the protocol; its head alone is kept."""

_HEAD_BYTES = 200
_CHUNK_BYTES = 1 << 16
# Fields of each event with their types; an event without them is none.
_FIELDS: Mapping[str, Mapping[str, type]] = {
    "phase": {"name": str},
    "progress": {"done": int, "of": int, "what": str},
    "done": {"result": dict},
    "error": {"kind": str, "message": str},
}


class LineReader:
    """Lines of a pipe as they come.

    Args:
        descriptor: end to read, made non-blocking; it stays the caller's to close.

    Attributes:
        closed: True once nobody holds the other end any more.
    """

    def __init__(self, descriptor: int) -> None:
        self.closed = False
        self._descriptor = descriptor
        self._rest = b""
        self._skipping = False
        os.set_blocking(descriptor, False)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def lines(self, timeout_s: float) -> list[bytes]:
        """Lines that have come, without their ends; waits at most `timeout_s` for the first.

        Of a line longer than `MAX_LINE_BYTES` only the head is given. A last line without an end is
        given when the pipe is closed.
        """
        if self.closed:
            time.sleep(timeout_s)
            return []
        if not self._poll.poll(timeout_s * 1000):
            return []
        chunk = os.read(self._descriptor, _CHUNK_BYTES)
        if not chunk:
            self.closed = True
            rest, self._rest = self._rest, b""
            return [rest] if rest else []
        return self._split(chunk)

    def _split(self, chunk: bytes) -> list[bytes]:
        first, *others = chunk.split(b"\n")
        lines = []
        if others:
            if not self._skipping:
                lines.append(self._rest + first)
            lines += others[:-1]
            self._rest, self._skipping = others[-1], False
        elif not self._skipping:
            self._rest += first
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest[:_HEAD_BYTES] + b" ...")
            self._rest, self._skipping = b"", True
        return lines


def parse(line: bytes) -> dict[str, Any] | None:
    """The event in a line, fit to be shown; None if it is none.

    A worker loads other people's code, which may print, so anything else is expected here too.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    fields = _FIELDS.get(event.get("event")) if _is_named(event) else None
    if fields is None or not all(isinstance(event.get(key), kind) for key, kind in fields.items()):
        return None
    if event["event"] == "done":  # data for the tuner, not text to be shown
        return {"event": "done", "result": event["result"]}
    kept = {key: event[key] for key in ("event", *fields)}
    shown: dict[str, Any] = redact_data(printable_data(kept))
    return shown


def _is_named(event: Any) -> bool:
    return isinstance(event, dict) and isinstance(event.get("event"), str)
