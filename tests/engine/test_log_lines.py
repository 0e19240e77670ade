"""Cleaning the lines of a log."""

from __future__ import annotations

import time

import pytest

from sweeper.engine.log_lines import MAX_LINE_CHARS, clean, last_line, lines, tail


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("(EngineCore_DP0 pid=1234) ERROR 10-25 13:08:43 [core.py:708] KeyError: 1", "KeyError: 1"),
        ("(RayWorkerWrapper pid=7, ip=10.0.0.2) [rank1]: KeyError: 1", "KeyError: 1"),
        ("[vllm]: \x1b[1;31mKeyError: 1\x1b[0m", "KeyError: 1"),
        ("(Worker pid=1) ERROR 10-25 13:08:43 [a.py:7]   File x", "  File x"),
        ("  Value error, too many [type=value_error, input_value=1, input_type=int]", "too many"),
        ("(16.00 GiB KV cache is needed)", "(16.00 GiB KV cache is needed)"),
        ("(VllmWorker rank=7 pid=240) KeyError: 1", "KeyError: 1"),
        (
            "(APIServer pid=1) (EngineCore_DP6 pid=2) (Worker_DP6_EP6 pid=3) KeyError: 1",
            "KeyError: 1",
        ),
        ("ERROR 05-21 09:27:46 engine.py:366] KeyError: 1", "KeyError: 1"),
        ("2026-03-11T17:57:10.97+00:00 stderr F KeyError: 1", "KeyError: 1"),
        ("Mar  1 17:57:10 gpu-7 docker[411]: KeyError: 1", "KeyError: 1"),
        ("vllm-1  | KeyError: 1", "KeyError: 1"),
        ("[pod/vllm-0/server] KeyError: 1", "KeyError: 1"),
        ("[12345.678901] Killed process 7", "Killed process 7"),
        ("[rank0]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] late", "late"),
        ("ERROR:    [Errno 98] taken", "[Errno 98] taken"),
        ("nul\0 and\x85 bell\x07 and \ud800", "nul and  bell  and ?"),
    ],
)
def test_prefixes_colours_and_wrapping_go(raw: str, text: str) -> None:
    assert clean(raw) == text


@pytest.mark.parametrize(
    ("raw", "level"),
    [
        ("(A pid=1) WARNING 10-25 13:08:43 [a.py:7] careful", "WARNING"),
        ("[W1129 20:43:59.498138112 utils.cpp:68] careful", "WARNING"),
        ("2025-02-11 21:35:17,102 INFO worker.py:1654 -- Connecting", "INFO"),
        ("site-packages/a.py:24: FutureWarning: soon", "WARNING"),
        ("ERROR:root:bad", "ERROR"),
        ('{"levelname": "info", "message": "well"}', "INFO"),
        ("2026-01-01 10:00:00 - engine - WARNING - careful", "WARNING"),
        ("KeyError: 1", ""),
    ],
)
def test_level_is_read_from_every_kind_of_header(raw: str, level: str) -> None:
    assert [line.level for line in lines(raw)] == [level]


@pytest.mark.parametrize(
    "filling", ["(A pid=", "[rank1]: ", "a | ", "\x1b[", "(((", "[type=", " ", 'File "', "INFO: "]
)
def test_cleaning_is_quick_whatever_a_line_is_full_of(filling: str) -> None:
    started = time.perf_counter()
    for line in lines("ERROR " + filling * (1_000_000 // len(filling))):
        assert len(line.text) <= MAX_LINE_CHARS
    assert time.perf_counter() - started < 2.0


def test_a_long_line_keeps_both_ends() -> None:
    (line,) = lines("KeyError: 'x' " + "." * 50_000 + " the end")
    assert line.text.startswith("KeyError: 'x' .") and line.text.endswith(". the end")


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


USAGE = """\
usage: server.py [-h] [--decode-context-parallel-size DECODE_CONTEXT_PARALLEL_SIZE]
                 {serve,bench} ...
                 [model_tag]
server.py: error: unrecognized arguments: --x"""
HELP = """\
Usage: server.py [OPTIONS]
positional arguments:
  model_tag   no available memory for what it names
ModelConfig:
  Address already in use is a text that this group is about.

  --swap-space SIZE
                        OutOfMemoryError is what it may end in
RuntimeError: the program says again"""


@pytest.mark.parametrize("prefix", ["", "(APIServer pid=7) ", "vllm-1  | "])
@pytest.mark.parametrize("manual", [USAGE, HELP])
def test_usage_and_help_are_shown_and_not_said(manual: str, prefix: str) -> None:
    log = lines("\n".join(prefix + line for line in manual.splitlines()))
    said = [line.text for line in log if line.may_be_cause and line.text]
    assert said == [manual.splitlines()[-1]]


def test_a_line_of_usage_that_was_torn_from_its_block_is_known_by_its_form() -> None:
    torn = "(EngineCore pid=7) INFO 10-25 13:08:43 [x.py:1] loading\n    [--swap-space SWAP_SPACE]"
    assert not any(line.may_be_cause for line in lines(torn))
    assert all(line.may_be_cause for line in lines("ValueError: --swap-space is gone\n - a list"))
