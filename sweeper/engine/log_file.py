"""A server's log file as text of bounded size, whatever the size of the file.

Of a short log all is kept. Of a long one:

    |-- head --|------------- middle --------------|-- tail --|
      all of it   lines that speak of an error, with     all of it
                  their surroundings, one of a kind

A cause stands anywhere: at the start, at the end, or hours before the end in a server that was
restarted or went on without a worker. The file is read once, in blocks, so a pipe will do.
"""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import BinaryIO

HEAD_BYTES = 4_000_000
TAIL_BYTES = 4_000_000
MIDDLE_BYTES = 2_000_000
BLOCK_BYTES = 1_000_000
BYTES_BEFORE = 500
BYTES_AFTER = 1000
KIND_BYTES = 80
MAX_LINE_START = 300
"""How far back from a mark the beginning of its line is looked for."""
MAX_KINDS = 4000
CUT = b"\n(...)\n"

# Each is searched by itself: a plain search is many times faster than one expression for all.
_MARKS = (
    b"rror",
    b"xception",
    b"ERROR",
    b"Killed",
    b"NVRM",
    b"core dumped",
    b"Application startup complete",
    b"non-default args",
)
_FIGURES = re.compile(rb"[\d\s]+|0x[0-9a-f]+|[0-9a-f]{8,}")


def read_log(path: Path) -> str:
    """A server's log as text, see the module; what cannot be read is said in its place."""
    try:
        with path.open("rb") as file:
            return condense(file)
    except OSError as problem:
        return f"(the log cannot be read: {problem})"


def condense(file: BinaryIO) -> str:
    """The text of a log of any size in at most about 10 MB. Reads to the end of `file`."""
    head = _read(file, HEAD_BYTES)
    middle, tail = _Middle(), deque[bytes]()
    kept_bytes = 0
    while block := _read(file, BLOCK_BYTES):
        tail.append(block)
        kept_bytes += len(block)
        if kept_bytes - len(tail[0]) >= TAIL_BYTES:
            oldest = tail.popleft()
            kept_bytes -= len(oldest)
            middle.take(oldest)
    data = head + middle.text() + b"".join(tail)
    return data.decode("utf-8", errors="replace")


def _read(file: BinaryIO, count: int) -> bytes:
    """Up to `count` bytes; fewer only at the end, also where a pipe hands out little at a time."""
    parts: list[bytes] = []
    while count > 0 and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class _Middle:
    """Excerpts from the middle of a log: the first of each kind of line that speaks of an error.

    Blocks overlap by an excerpt, so each place is looked at once, with all that is around it.
    """

    def __init__(self) -> None:
        self._kinds: set[bytes] = set()
        self._excerpts: list[bytes] = []
        self._bytes = 0
        self._data: bytes | None = None
        self._low = 0

    def take(self, block: bytes) -> None:
        """Look through the next block, but for its end."""
        data = (self._data or b"") + block
        high = max(self._low, len(data) - BYTES_AFTER)
        self._look(data, self._low, high)
        kept_from = max(0, high - BYTES_BEFORE)
        self._data, self._low = data[kept_from:], high - kept_from

    def text(self) -> bytes:
        """The excerpts, each after a mark that something is left out; empty without a middle."""
        if self._data is None:
            return b""
        self._look(self._data, self._low, len(self._data))
        return CUT + b"".join(excerpt + CUT for excerpt in self._excerpts)

    def _look(self, data: bytes, low: int, high: int) -> None:
        end = 0
        for place in _places(data, low, high):
            if self._bytes > MIDDLE_BYTES or len(self._kinds) >= MAX_KINDS:
                return
            if place < end:
                continue
            near = max(0, place - MAX_LINE_START)
            start = (
                max(data.rfind(b"\n", near, place), data.rfind(b"\r", near, place), near - 1) + 1
            )
            line = data[start : place + KIND_BYTES].partition(b"\n")[0]
            kind = _FIGURES.sub(b"0", line)
            if kind in self._kinds:
                continue
            self._kinds.add(kind)
            first = max(end, start - BYTES_BEFORE)
            first = max(first, data.find(b"\n", first, start) + 1)
            end = min(len(data), place + BYTES_AFTER)
            self._excerpts.append(data[first:end])
            self._bytes += end - first


def _places(data: bytes, low: int, high: int) -> list[int]:
    """Where lines speak of an error, from `low` to before `high`: one place a mark and line."""
    places = []
    for mark in _MARKS:
        place = data.find(mark, low)
        while 0 <= place < high:
            places.append(place)
            line_end = data.find(b"\n", place)
            place = data.find(mark, line_end) if line_end >= 0 else -1
    return sorted(places)
