from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.toolchain import events
from sweeper.toolchain.events import LineReader, parse


@pytest.fixture
def pipe() -> Iterator[tuple[LineReader, int]]:
    read_end, write_end = os.pipe()
    yield LineReader(read_end), write_end
    for end in (read_end, write_end):
        try:
            os.close(end)
        except OSError:
            assert end == write_end, "a test closes the end it writes to, and no other"


def read_all(reader: LineReader) -> list[bytes]:
    lines = []
    while not reader.closed:
        lines += reader.lines(1.0)
    return lines


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 13))
def test_lines_come_whole_however_they_are_cut(pieces: list[bytes], cut: int) -> None:
    text = b"".join(piece.replace(b"\n", b"") + b"\n" for piece in pieces)
    read_end, write_end = os.pipe()
    reader, lines = LineReader(read_end), []
    for start in range(0, len(text), cut):
        os.write(write_end, text[start : start + cut])
        lines += reader.lines(0)
    os.close(write_end)
    lines += read_all(reader)
    os.close(read_end)
    assert lines == text.split(b"\n")[:-1]


def test_a_last_line_without_an_end_is_a_line(pipe: tuple[LineReader, int]) -> None:
    reader, write_end = pipe
    os.write(write_end, b"one\ntwo")
    os.close(write_end)
    assert read_all(reader) == [b"one", b"two"]


def test_of_a_huge_line_the_head_is_kept(
    pipe: tuple[LineReader, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_LINE_BYTES", 1000)
    reader, write_end = pipe
    lines = []
    for text in (b"x" * 600, b"x" * 600, b"x" * 5000, b"end of it\nnext\n"):
        os.write(write_end, text)
        lines += reader.lines(0)
    assert lines == [b"x" * 200 + b" ...", b"next"]


def test_a_silent_pipe_and_a_closed_one_cost_the_time_they_may(
    pipe: tuple[LineReader, int],
) -> None:
    reader, write_end = pipe
    for _ in range(2):
        begun = time.monotonic()
        assert reader.lines(0.02) == []
        assert time.monotonic() - begun >= 0.015
        if not reader.closed:
            os.close(write_end)
            assert reader.lines(0.02) == []
            assert reader.closed


@pytest.mark.parametrize(
    "event",
    [
        {"event": "phase", "name": "load"},
        {"event": "progress", "done": 1, "of": 2, "what": "layers"},
        {"event": "done", "result": {"a": [1]}},
        {"event": "error", "kind": "memory", "message": "too little"},
    ],
)
def test_events_are_known(event: dict[str, object]) -> None:
    assert parse(json.dumps(event).encode()) == event
    assert parse(json.dumps({**event, "more": 1}).encode()) == event
    for field in event:
        assert parse(json.dumps({**event, field: None}).encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"Loading: 3%", b"[1]", b"{}", b"{nan", b"\xff\xfe{}", b'{"event": ["done"]}'),
        *(b'{"event": ' + b"[" * 100_000, b'{"a":' * 100_000),
    ],
)
def test_anything_else_is_no_event(line: bytes) -> None:
    assert parse(line) is None


@given(st.binary(max_size=200))
def test_no_line_is_too_strange(line: bytes) -> None:
    parse(line)
    parse(b"{" + line)


def test_text_of_an_event_can_be_shown() -> None:
    token = "hf_" + "a1" * 20
    event = parse(
        json.dumps({"event": "error", "kind": "failed", "message": f"\x1b[31m{token}"}).encode()
    )
    assert event == {"event": "error", "kind": "failed", "message": "(hidden)"}
