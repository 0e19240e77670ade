"""An HTTP/1.1 response from bytes, however the network has cut them. Pure.

    head ──┬── chunked ───────────▶ done
           ├── content-length ────▶ done
           └── until the connection ends ──(eof)──▶ done

The body is handed on as it comes, never kept. Only what an inference server or a proxy before it
sends is understood; anything else is a `MalformedResponseError`.
"""

from __future__ import annotations

from collections.abc import Callable

_MAX_HEAD_BYTES = 1 << 16
_NO_BODY = frozenset({204, 304})
_HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")


class MalformedResponseError(OSError):
    """The bytes are no HTTP/1.1 response: the connection is of no more use."""


class ResponseReader:
    """Reads one response.

    Args:
        on_body: called with each piece of the body.

    Attributes:
        status: None until the head has come.
        headers: lower-case names.
        done: the response is complete.
        keeps_connection: whether another request may be sent on it afterwards.
    """

    def __init__(self, on_body: Callable[[bytes], None]) -> None:
        self._on_body = on_body
        self._buffer = b""
        self._left = 0  # bytes of the chunk or of the body still to come
        self._chunked = False
        self._until_eof = False
        self._after_chunk = False
        self._in_trailers = False
        self._at_chunk = False  # the next byte is the first of a chunk's length
        self.status: int | None = None
        self.headers: dict[bytes, bytes] = {}
        self.done = False
        self.keeps_connection = True

    def feed(self, data: bytes) -> None:
        """Take in what came.

        Raises:
            MalformedResponseError: it is no response.
        """
        if self._at_chunk and (piece := _one_chunk(data)):  # nearly every read
            self._on_body(piece)
            return
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        if self.status is None:
            data = self._head(data)
        if data and self.status is not None:
            if self._chunked:
                self._chunks(data)
                at_length = not (self._left or self._after_chunk or self._in_trailers)
                self._at_chunk = at_length and not self._buffer
            else:
                self._plain(data)

    def end(self) -> bool:
        """The server has closed the connection; True if the response is complete."""
        if self._until_eof and self.status is not None:
            self.done = True
        return self.done

    def _head(self, data: bytes) -> bytes:
        """Read the head, if it is all there; answers with what follows it."""
        while self.status is None:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > _MAX_HEAD_BYTES:
                    raise MalformedResponseError("the head of the response has no end")
                self._buffer = data
                return b""
            head, data = data[:end], data[end + 4 :]
            self._begin(head.split(b"\r\n"))
        return data

    def _begin(self, lines: list[bytes]) -> None:
        version, _, rest = lines[0].partition(b" ")
        code = rest[:3]
        if not version.startswith(b"HTTP/1.") or not code.isdigit():
            raise MalformedResponseError("the server does not speak HTTP/1.1")
        if code.startswith(b"1"):
            return  # an interim response
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            self.headers[name.strip().lower()] = value.strip()
        self.status = int(code)
        self._frame(version)

    def _frame(self, version: bytes) -> None:
        connection = self.headers.get(b"connection", b"").lower()
        self.keeps_connection = version != b"HTTP/1.0" and b"close" not in connection
        if b"chunked" in self.headers.get(b"transfer-encoding", b"").lower():
            self._chunked = True
        elif (length := self.headers.get(b"content-length")) is not None:
            if not length.isdigit():
                raise MalformedResponseError("the response has no readable length")
            self._left = int(length)
            self.done = self._left == 0
        elif self.status in _NO_BODY:
            self.done = True
        else:
            self._until_eof, self.keeps_connection = True, False

    def _plain(self, data: bytes) -> None:
        if self._until_eof:
            self._on_body(data)
            return
        self._on_body(data[: self._left])
        self._left -= len(data)
        self._finish_if(self._left <= 0, surplus=self._left < 0)

    def _chunks(self, data: bytes) -> None:
        position, end = 0, len(data)
        while position < end and not self.done:
            if self._left:
                piece = data[position : position + self._left]
                position += len(piece)
                self._left -= len(piece)
                self._after_chunk = not self._left
                self._on_body(piece)
                continue
            line_end = data.find(b"\r\n", position)
            if line_end < 0:
                break
            self._line(data[position:line_end])
            position = line_end + 2
        if self.done:
            self._finish_if(True, surplus=position < end)
        elif position < end:
            self._buffer = data[position:]
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise MalformedResponseError("a chunk's length has no end")

    def _line(self, line: bytes) -> None:
        """A line between chunks: the end of one, the length of the next, or a trailer."""
        if self._after_chunk:
            if line:
                raise MalformedResponseError("a chunk is longer than it says")
            self._after_chunk = False
        elif self._in_trailers:
            self.done = not line
        else:
            self._left = _chunk_length(line)
            self._in_trailers = self._left == 0

    def _finish_if(self, done: bool, *, surplus: bool) -> None:
        self.done = done
        if surplus:
            self.keeps_connection = False  # bytes nobody asked for


def _one_chunk(data: bytes) -> bytes:
    """The content of `data` if it is exactly one chunk, else nothing."""
    line_end = data.find(b"\r\n", 1, 10)
    if line_end < 0 or not data.endswith(b"\r\n"):
        return b""
    digits = data[:line_end]
    if not _HEXADECIMAL.issuperset(digits) or int(digits, 16) != len(data) - line_end - 4:
        return b""
    return data[line_end + 2 : -2]


def _chunk_length(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or not _HEXADECIMAL.issuperset(digits):
        raise MalformedResponseError("a chunk has no readable length")
    return int(digits, 16)
