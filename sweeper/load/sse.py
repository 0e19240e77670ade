"""Server-sent events from bytes, however the network has cut them. Pure."""

from __future__ import annotations

MAX_EVENT_BYTES = 1 << 20
"""Far above any event of a completion; without a limit a broken server fills the memory."""


class EndlessEventError(ValueError):
    """An event is longer than `MAX_EVENT_BYTES`."""


class SseParser:
    """An incremental parser: feed it bytes, it answers with the data of complete events.

    Any way of cutting the same bytes into pieces gives the same events. Lines may end in LF, CRLF
    or CR; comments and fields other than ``data`` are ignored, several ``data`` lines of one event
    are joined by a line feed (as the HTML standard says).
    """

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Data of the events that `piece` completes, oldest first.

        Raises:
            EndlessEventError: the event that has begun is too long to be one.
        """
        if not self._buffer and _is_one_plain_event(piece):  # nearly every piece
            return [piece[6:-2]]
        buffer = self._buffer + piece
        held = b""
        if b"\r" in buffer:
            if buffer.endswith(b"\r"):  # perhaps the first half of CRLF
                buffer, held = buffer[:-1], b"\r"
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *blocks, rest = buffer.split(b"\n\n")
        self._buffer = rest + held
        if len(self._buffer) > MAX_EVENT_BYTES:
            self._buffer = b""
            raise EndlessEventError(f"an event is longer than {MAX_EVENT_BYTES} bytes")
        return [data for block in blocks if (data := _data_of(block)) is not None]

    def close(self) -> list[bytes]:
        """Events left when the stream ends; tolerates a missing last blank line."""
        buffer = self._buffer.replace(b"\r", b"\n")
        self._buffer = b""
        return [data for block in buffer.split(b"\n\n") if (data := _data_of(block)) is not None]


def _is_one_plain_event(piece: bytes) -> bool:
    return (
        piece.startswith(b"data: ")
        and piece.endswith(b"\n\n")
        and piece.find(b"\n") == len(piece) - 2
        and b"\r" not in piece
    )


def _data_of(block: bytes) -> bytes | None:
    if block.startswith(b"data: ") and b"\n" not in block:  # nearly every event
        return block[6:]
    lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if _is_data(line)]
    return b"\n".join(lines) if lines else None


def _is_data(line: bytes) -> bool:
    return line.startswith(b"data:")
