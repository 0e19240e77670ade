"""Records go to disk while they come, and come back; text never does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sweeper.load import requests_file
from sweeper.load.level import LoadLevel
from sweeper.load.records import RequestOutcome, RequestRecord
from sweeper.load.requests_file import COLUMNS, PART_ROWS, RequestsFile

GOOD = RequestRecord(0, 0.0, 0.0, 0.1, 0.5, 4, 8, 4, RequestOutcome.OK, "length", None, 8, 4)
BAD = RequestRecord(0, 0.0, 0.0, None, 0.2, 0, None, None, RequestOutcome.ERROR, None, "gone")


def test_records_of_all_levels_come_back(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    with RequestsFile(path) as file:
        file.begin(0, LoadLevel("closed", 1, concurrency=1), 0)
        file.add(GOOD)
        file.begin(1, LoadLevel("open", 1, rate_per_s=2.5, arrivals="poisson"), 1)
        file.add(BAD)
    rows = pq.read_table(path).to_pylist()
    told = [(row["level"], row["load"], row["repeat"], row["outcome"]) for row in rows]
    assert told == [(0, "concurrency 1", 0, "ok"), (1, "2.5 requests/s (poisson)", 1, "error")]
    assert rows[0]["concurrency"] == 1 and rows[1]["rate_per_s"] == 2.5
    assert rows[1]["first_token_s"] is None and rows[1]["error"] == "gone"
    assert tuple(rows[0]) == COLUMNS and not {"prompt", "text"} & set(rows[0])


def test_what_an_earlier_attempt_left_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    for _ in range(2):
        with RequestsFile(path) as file:
            file.begin(0, LoadLevel("closed", 1, concurrency=1), 0)
            file.add(GOOD)
    assert pq.read_table(path).num_rows == 1


def test_parts_are_written_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    with RequestsFile(path) as file:
        file.begin(0, LoadLevel("closed", 1, concurrency=1), 0)
        for _ in range(2 * PART_ROWS + 5):
            file.add(GOOD)
        assert pq.read_table(path).num_rows == 2 * PART_ROWS


def test_a_slow_level_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_file, "PART_EVERY_S", 0.0)
    path = tmp_path / "requests.parquet"
    with RequestsFile(path) as file:
        file.begin(0, LoadLevel("closed", 1, concurrency=1), 0)
        file.add(GOOD)
        assert pq.read_table(path).num_rows == 1


def test_a_tuner_killed_half_way_leaves_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    script = f"""
import itertools, pathlib
from sweeper.load.level import LoadLevel
from tests.load.test_requests_file import GOOD, RequestsFile
file = RequestsFile(pathlib.Path({str(path)!r}))
file.begin(0, LoadLevel("closed", 1, concurrency=1), 0)
for number in itertools.count():
    file.add(GOOD)
    if number == 3500:
        print("far enough", flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "far enough\n"
        os.kill(process.pid, signal.SIGKILL)
    rows = pq.read_table(path).num_rows
    assert rows >= 3 * PART_ROWS and rows % PART_ROWS == 0
