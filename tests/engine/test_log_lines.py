"""Cleaning the lines of a log."""

from __future__ import annotations

import pytest

from sweeper.engine.log_lines import clean, last_line, lines, tail


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("(EngineCore_DP0 pid=1234) ERROR 10-25 13:08:43 [core.py:708] KeyError: 1", "KeyError: 1"),
        ("(RayWorkerWrapper pid=7, ip=10.0.0.2) [rank1]: KeyError: 1", "KeyError: 1"),
        ("[vllm]: \x1b[1;31mKeyError: 1\x1b[0m", "KeyError: 1"),
        ("(Worker pid=1) ERROR 10-25 13:08:43 [a.py:7]   File x", "  File x"),
        ("  Value error, too many [type=value_error, input_value=1, input_type=int]", "too many"),
        ("(16.00 GiB KV cache is needed)", "(16.00 GiB KV cache is needed)"),
    ],
)
def test_prefixes_colours_and_wrapping_go(raw: str, text: str) -> None:
    assert clean(raw) == text


def test_progress_written_over_itself_is_one_line_each() -> None:
    assert [line.text for line in lines("loading 1%\rloading 2%\nready")] == [
        "loading 1%",
        "loading 2%",
        "ready",
    ]


def test_levels_and_source_are_told_apart() -> None:
    log = lines(
        "(A pid=1) WARNING 10-25 13:08:43 [a.py:7] careful\n"
        "INFO:     127.0.0.1 - GET /health\n"
        '  File "a.py", line 3, in f\n'
        "    raise ValueError(\n"
        "         ^^^^\n"
        "ValueError: no\n"
    )
    assert [line.may_be_cause for line in log if line.text] == [False] * 5 + [True]


def test_last_line_and_tail_skip_what_says_nothing() -> None:
    log = lines("one\ntwo\n\n   \n")
    assert last_line(log) == "two"
    assert tail(log, 1) == "two"
    assert last_line([]) == ""
