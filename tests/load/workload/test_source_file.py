"""Files are read once, hashed, and their lines numbered as an editor numbers them."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from sweeper.config.schema import WorkloadConfig
from sweeper.errors import ConfigError
from sweeper.load.workload.source_file import Remembered, read_source


def test_lines_are_numbered_from_one_and_blank_ones_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\n  \nfour \xe2\x80\xa8 still four\n")
    source = read_source(str(path))
    assert [(number, line.strip()) for number, line in source.lines()] == [
        (1, "one"),
        (4, "four \u2028 still four"),
    ]
    assert source.name == "a.txt" and source.sha256 == sha256(path.read_bytes()).hexdigest()


def test_text_that_is_not_utf8_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\nM\xfcnchen\n")
    with pytest.raises(ConfigError, match="line 3 is not UTF-8"):
        read_source(str(path))


def test_a_file_is_read_again_only_if_it_or_the_workload_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    reads: list[str] = []

    def read(cfg: WorkloadConfig) -> str:
        reads.append(path.read_text())
        return reads[-1]

    remembered = Remembered(read)
    cfg = WorkloadConfig(path=str(path))
    assert remembered(cfg) == remembered(cfg) == "one" and len(reads) == 1
    remembered(WorkloadConfig(path=str(path), max_requests=3))
    assert len(reads) == 2
    path.write_text("two")
    os.utime(path, (1, 1))
    assert remembered(cfg) == "two"
