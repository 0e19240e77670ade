"""Messages of one line and of several, and where they were raised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engine.log_lines import lines
from sweeper.engine.log_messages import READABLE_CHARS, message, raised_at, readable

SITE = "/opt/venv/lib/python3.11/site-packages"
TRACE = f"""\
Traceback (most recent call last):
  File "{SITE}/vllm/a.py", line 7, in outer
    inner()
    ^^^^^^^
  File "{SITE}/vllm/config/b.py", line 9, in inner
    assert heads % shards == 0
           ^^^^^^^^^^^^^^^^^^^
AssertionError"""


def said(log_text: str, number: int = 0) -> str:
    log = lines(log_text)
    return message(log, log[number])[0]


def test_the_innermost_frame_is_where_it_was_raised() -> None:
    log = lines(TRACE)
    frame = raised_at(log, len(log) - 1)
    assert frame is not None
    assert (frame.path, frame.line) == (f"{SITE}/vllm/config/b.py", 9)
    assert str(frame) == "vllm/config/b.py:9: assert heads % shards == 0"


def test_what_others_write_between_does_not_hide_the_frame() -> None:
    parts = TRACE.rpartition("\n")
    log = lines(f"{parts[0]}\n(Worker pid=7) INFO 10-25 13:08:43 [x.py:1] loading\n{parts[2]}")
    frame = raised_at(log, len(log) - 1)
    assert frame is not None and frame.line == 9
    log = lines(f"{parts[0]}\nsomething said by another process\n{parts[2]}")
    assert raised_at(log, len(log) - 1) is None


def test_an_exception_without_a_word_tells_where_it_was_raised() -> None:
    expected = "AssertionError at vllm/config/b.py:9: assert heads % shards == 0"
    assert said(TRACE, TRACE.count("\n")) == expected
    assert said("AssertionError") == "AssertionError"


def test_what_a_colon_announces_is_part_of_the_message() -> None:
    log = "ValueError: one of: \n(1) this, \n(2) that. \nTraceback (most recent call last):\nno"
    assert said(log) == "one of: (1) this, (2) that."
    assert said("ValueError: one of:\nKeyError: 'x'") == "one of:"
    long = said("ValueError: one of:\n" + "\n".join(["a word or two"] * 100))
    assert 200 < len(long) <= READABLE_CHARS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ValueError: no", "no"),
        ("huggingface_hub.errors.LocalEntryNotFoundError: no", "LocalEntryNotFoundError: no"),
        ("RuntimeError: [enforce fail at /__w/x.cc:24] rv != -1. no", "rv != -1. no"),
        ("RuntimeError: Worker failed with error 'no', please check the stack trace above for "
         "the root cause", "no"),
        ("Exception in worker VllmWorkerProcess while processing method init_device: no, "
         "Traceback (most recent call last):", "no"),
        ("RuntimeError('no')", "no"),
        ("", ""),
        ("First. " + "x" * 400, "First. " + "x" * (READABLE_CHARS - 4 - 7) + " ..."),
        (f"{'word ' * 30}ends (e.g. here) {'more ' * 90}",
         "word " * 30 + "ends (e.g. here) " + ("more " * 26)[:-1] + " ..."),
        (f"{'word ' * 30}ends. {'more ' * 90}", "word " * 30 + "ends."),
    ],
)  # fmt: skip
def test_readable(text: str, expected: str) -> None:
    assert readable(text) == expected


@given(st.text(max_size=900))
def test_any_text_is_readable_in_one_line(text: str) -> None:
    for line in lines(text):
        assert len(readable(line.text)) <= READABLE_CHARS + 4
        assert message(lines(text), line)[0] or not line.text.strip()


def test_a_list_of_fields_ends_with_its_count() -> None:
    log = lines(
        "error: argument --x: 1 validation error for XConfig\nfield\n  is bad [type=a, input_value="
        "1]\nother\n  is no part of it"
    )
    text, learnt = message(log, log[0])
    assert text == "error: argument --x: field: is bad"
    assert learnt == {"config": "XConfig", "fields": ["field"], "problems": ["is bad"]}


def test_an_announcement_without_a_list_stands_for_itself() -> None:
    assert said("ValidationError: 2 validation errors for XConfig") == (
        "ValidationError: 2 validation errors for XConfig"
    )
