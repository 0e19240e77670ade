"""What moves in a start, and what only looks as if it did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.engine import procfs, stall
from sweeper.engine.procfs import Identity
from sweeper.engine.stall import LogNews, Signs, StallWatch, moved

ONE = frozenset({Identity(1, 1)})
REST = Signs(5, 1 << 30, 1 << 32, ONE)


def test_noise_is_no_movement() -> None:
    assert not moved(REST, Signs(5, (1 << 30) + 4096, (1 << 32) - 4096, ONE))


@pytest.mark.parametrize(
    "now",
    [
        Signs(6, 1 << 30, 1 << 32, ONE),
        Signs(5, (1 << 30) + (1 << 20), 1 << 32, ONE),
        Signs(5, 1 << 30, (1 << 32) + (16 << 20), ONE),
        Signs(5, 1 << 30, (1 << 32) - (16 << 20), ONE),
        Signs(5, 1 << 30, 1 << 32, ONE | {Identity(2, 1)}),
        Signs(5, 1 << 30, 1 << 32, frozenset()),
    ],
)
def test_each_sign_is_movement(now: Signs) -> None:
    assert moved(REST, now)


def test_a_line_that_only_comes_again_with_other_numbers_is_no_news(tmp_path: Path) -> None:
    log = tmp_path / "log"
    news = LogNews(log)
    assert news.look() == 0
    line = "No available shared memory broadcast block found in {} seconds.\n"
    log.write_text("loading\n" + line.format(60))
    assert news.look() == 2
    with log.open("a") as file:
        file.write(line.format(120) + "\r\n\n")
    assert news.look() == 2
    with log.open("a") as file:
        file.write("half a")
    assert news.look() == 2
    with log.open("a") as file:
        file.write(" line\n")
    assert news.look() == 3
    log.write_text("new\n")
    assert news.look() == 4, "begun anew"


def test_a_flood_of_lines_is_news_and_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "MAX_LOOK_BYTES", 100)
    log = tmp_path / "log"
    log.write_bytes(b"x" * 10_000)
    news = LogNews(log)
    assert news.look() == 1
    assert news.look() == 1


def test_a_watch_speaks_once_nothing_has_moved_for_its_time(tmp_path: Path) -> None:
    now = [0.0]
    log = tmp_path / "log"
    device = [0]
    watch = StallWatch(log, 10.0, lambda: device[0], lambda: now[0])
    log.write_text("starting\n")
    assert watch.look([]) is None
    now[0] = 9.0
    device[0] = 1 << 30
    assert watch.look([]) is None, "the device fills"
    now[0] = 18.0
    assert watch.look([]) is None
    now[0] = 19.0
    said = watch.look([])
    assert said is not None
    assert "nothing moved for 10 s" in said
    assert "no disk read" in said
    with log.open("a") as file:
        file.write("it works again\n")
    assert watch.look([]) is None


def test_a_process_that_only_spins_stands_still(tmp_path: Path) -> None:
    """Workers that wait for each other keep their processors busy: that is no progress."""
    now = [0.0]
    watch = StallWatch(tmp_path / "log", 5.0, clock=lambda: now[0])
    command = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as spinning:
        assert spinning.stdout is not None
        spinning.stdout.readline()
        process = procfs.read(spinning.pid)
        assert process is not None
        assert watch.look([process.identity]) is None
        now[0] = 6.0
        assert watch.look([process.identity]) is not None
        spinning.kill()


def test_memory_and_disk_of_a_real_process_are_told() -> None:
    assert stall._memory_bytes(os.getpid()) > 10 << 20
    assert stall._disk_bytes(os.getpid()) >= 0
    assert stall._memory_bytes(2**22 + 1) == stall._disk_bytes(2**22 + 1) == 0
