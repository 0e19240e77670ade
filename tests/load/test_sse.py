"""The bytes of a stream may be cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.load.sse import MAX_EVENT_BYTES, EndlessEventError, SseParser

PAYLOAD = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=20
).map(str.encode)
NOISE = st.sampled_from([b"", b": ping\n", b"event: message\n", b"id: 7\n", b"\n"])


def parse(pieces: list[bytes]) -> list[bytes]:
    parser = SseParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return [*events, *parser.close()]


@given(
    payloads=st.lists(PAYLOAD, max_size=6),
    noise=NOISE,
    newline=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 300), max_size=12),
    ended=st.booleans(),
)
def test_any_cut_gives_the_same_events(
    payloads: list[bytes], noise: bytes, newline: bytes, cuts: list[int], ended: bool
) -> None:
    text = b"".join(noise + b"data: " + payload + b"\n\n" for payload in payloads)
    if not ended:
        text = text.rstrip(b"\n")
    text = text.replace(b"\n", newline)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert parse(pieces) == payloads


@given(st.binary(max_size=80), st.integers(0, 80))
def test_arbitrary_bytes_are_cut_without_a_difference(text: bytes, cut: int) -> None:
    assert parse([text[:cut], text[cut:]]) == parse([text])


def test_events_come_out_as_soon_as_they_are_complete() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a") == []
    assert parser.feed(b"\n\ndata: b\n") == [b"a"]
    assert parser.feed(b"\n") == [b"b"]


def test_data_lines_of_one_event_are_joined() -> None:
    assert parse([b"data: one\ndata:two\n\n"]) == [b"one\ntwo"]


def test_an_event_without_end_is_given_up() -> None:
    """Otherwise a broken server fills the tuner's memory."""
    parser = SseParser()
    piece = b"a" * 65536
    with pytest.raises(EndlessEventError):
        for _ in range(MAX_EVENT_BYTES // len(piece) + 1):
            parser.feed(piece)
    assert parser.feed(b"data: b\n\n") == [b"b"], "nothing of it is kept"
