"""Only what a launch itself left in shared memory is removed."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.engine import shared_memory
from sweeper.engine.shared_memory import SharedMemory

USER = """
import mmap, sys, time
files = [open(name, "r+b") for name in sys.argv[1:]]
maps = [mmap.mmap(file.fileno(), 0) for file in files]
for file in files: file.close()
print(flush=True)
time.sleep(60)
"""


@pytest.fixture
def names() -> Iterator[list[Path]]:
    if not shared_memory.FOLDER.is_dir():
        pytest.skip("no shared memory on this system")
    made = [shared_memory.FOLDER / f"sweeper-test-{secrets.token_hex(6)}" for _ in range(3)]
    yield made
    for path in made:
        path.unlink(missing_ok=True)


def using(*paths: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", USER, *map(str, paths)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_what_the_launch_used_goes_and_all_else_stays(names: list[Path]) -> None:
    before, ours, appeared = names
    before.write_bytes(b"x" * 4096)
    watch = SharedMemory.now()
    ours.write_bytes(b"x" * 4096)
    appeared.write_bytes(b"x" * 4096)
    launch = using(before, ours)
    watch.look([launch.pid])
    assert watch.remove_left() == [], "it is in use"
    end(launch)
    assert watch.remove_left() == [ours.name]
    assert before.exists()
    assert appeared.exists(), "it came meanwhile, and nobody saw the launch use it"


def test_what_somebody_else_uses_now_stays(names: list[Path]) -> None:
    watch = SharedMemory.now()
    names[0].write_bytes(b"x" * 4096)
    launch, other = using(names[0]), using(names[0])
    watch.look([launch.pid])
    end(launch)
    assert watch.remove_left() == []
    end(other)
    assert watch.remove_left() == [names[0].name]
