"""A response may be cut anywhere, and its body arrives whole."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.http1 import MalformedResponseError, ResponseReader

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def read(pieces: list[bytes], *, ends: bool = False) -> tuple[ResponseReader, bytes]:
    body: list[bytes] = []
    reader = ResponseReader(body.append)
    for piece in pieces:
        reader.feed(piece)
    if ends:
        reader.end()
    return reader, b"".join(body)


def cut(text: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(text), *(at for at in cuts if at < len(text))})
    return [text[a:b] for a, b in pairwise(edges)]


CUTS = st.lists(st.integers(0, 400), max_size=12)
CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)


@given(chunks=CHUNKS, cuts=CUTS, trailer=st.booleans(), extension=st.booleans())
def test_a_chunked_body_is_whole_however_it_is_cut(
    chunks: list[bytes], cuts: list[int], trailer: bool, extension: bool
) -> None:
    more = b";name=value" if extension else b""
    framed = b"".join(b"%X%s\r\n%s\r\n" % (len(c), more, c) for c in chunks)
    end = b"0\r\n" + (b"Digest: x\r\n" if trailer else b"") + b"\r\n"
    reader, body = read(cut(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + end, cuts))
    assert (body, reader.status) == (b"".join(chunks), 200)
    assert reader.done and reader.keeps_connection


@given(chunks=CHUNKS)
def test_one_chunk_a_read_is_the_same_as_any_other_cut(chunks: list[bytes]) -> None:
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    pieces = [head, *(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks), b"0\r\n\r\n"]
    reader, body = read(pieces)
    assert (body, reader.done) == (b"".join(chunks), True)


@given(body=st.binary(max_size=60), cuts=CUTS)
def test_a_body_of_known_length_ends_there(body: bytes, cuts: list[int]) -> None:
    text = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    reader, got = read(cut(text, cuts))
    assert (got, reader.done, reader.keeps_connection) == (body, True, True)


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    reader, body = read([HEAD + b"\r\nab", b"c"])
    assert not reader.done
    reader, body = read([HEAD + b"\r\nab", b"c"], ends=True)
    assert (body, reader.done, reader.keeps_connection) == (b"abc", True, False)


def test_a_connection_that_ends_inside_a_body_leaves_it_unfinished() -> None:
    for text in (
        HEAD,
        HEAD + b"Content-Length: 5\r\n\r\nab",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    ):
        reader, _ = read([text], ends=True)
        assert not reader.done


def test_an_interim_response_is_passed_over() -> None:
    reader, body = read([b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"content-length: 1\r\n\r\nx"])
    assert (reader.status, body) == (200, b"x")


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-2\r\nab",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_response_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedResponseError):
        read([text])


def test_a_connection_is_not_used_again_if_the_server_says_so_or_sends_too_much() -> None:
    closing, _ = read([HEAD + b"Connection: close\r\nContent-Length: 1\r\n\r\nx"])
    talking, body = read([HEAD + b"Content-Length: 1\r\n\r\nxyz"])
    assert closing.done and not closing.keeps_connection
    assert body == b"x" and talking.done and not talking.keeps_connection
