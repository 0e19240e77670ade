from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ModelError
from sweeper.models import cache
from sweeper.models.cache import (
    MANIFEST,
    build_once,
    cache_dir,
    hold,
    is_held,
    last_used_s,
    leftovers,
    remove_unused,
    sha256_of,
    unchanged,
    verified,
)


class Builder:
    """Builds a folder of two files and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> dict[str, Any]:
        self.calls += 1
        (folder / "weights").write_bytes(b"w" * 1000)
        (folder / "sub").mkdir()
        (folder / "sub" / "config").write_text("c")
        return {"source": "test"}


def test_built_once_and_reused(tmp_path: Path) -> None:
    build, said = Builder(), []
    first = build_once(tmp_path / "m", build, said.append)
    second = build_once(tmp_path / "m", build, said.append)
    assert build.calls == 1
    assert first == second
    assert first["source"] == "test"
    assert set(first["files"]) == {"weights", "sub/config"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: (m / "weights").unlink(),
        lambda m: (m / "weights").write_bytes(b"w" * 999),
        lambda m: (m / "weights").write_bytes(b"x" * 1000),
        lambda m: (m / MANIFEST).unlink(),
        lambda m: (m / MANIFEST).write_text("{"),
        lambda m: (m / MANIFEST).write_text("[]"),
        lambda m: (m / MANIFEST).write_text('{"files": {}}'),
    ],
)
def test_a_damaged_folder_is_noticed_and_made_again(tmp_path: Path, damage: Any) -> None:
    build, said = Builder(), []
    build_once(tmp_path / "m", build, said.append)
    damage(tmp_path / "m")
    assert verified(tmp_path / "m") is None
    build_once(tmp_path / "m", build, said.append)
    assert build.calls == 2
    assert verified(tmp_path / "m") is not None
    assert any("damaged" in line for line in said)


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fails(folder: Path) -> dict[str, Any]:
        (folder / "weights").write_bytes(b"w")
        raise ModelError("no", "way")

    with pytest.raises(ModelError):
        build_once(tmp_path / "m", fails, print)
    assert [path.name for path in tmp_path.iterdir()] == [".m.lock"]


def test_leftovers_of_a_killed_build_are_removed(tmp_path: Path) -> None:
    (tmp_path / "m.partial-1").mkdir()
    (tmp_path / "m.partial-1" / "weights").write_bytes(b"half")
    build_once(tmp_path / "m", Builder(), print)
    assert not list(tmp_path.glob("*.partial-*"))


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ModelError, match="cannot be used") as caught:
        build_once(tmp_path / "file" / "m", Builder(), print)
    assert "SWEEPER_CACHE_DIR" in caught.value.remedy


def _slow_build(root: str) -> None:
    def build(folder: Path) -> dict[str, Any]:
        with (Path(root) / "calls").open("a") as calls:
            calls.write(f"{os.getpid()}\n")
        time.sleep(0.3)
        (folder / "weights").write_bytes(b"w")
        return {}

    build_once(Path(root) / "cache" / "m", build, lambda _: None)


def test_two_processes_build_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_slow_build, args=(str(tmp_path),)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    assert verified(tmp_path / "cache" / "m") is not None


def test_the_manifest_is_written_last(tmp_path: Path) -> None:
    def build(folder: Path) -> dict[str, Any]:
        assert not (folder / MANIFEST).exists()
        (folder / "weights").write_bytes(b"w")
        return {}

    build_once(tmp_path / "m", build, print)
    assert "weights" in json.loads((tmp_path / "m" / MANIFEST).read_text())["files"]


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SWEEPER_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir(SweeperConfig()) == tmp_path / ".cache" / "sweeper"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_dir(SweeperConfig()) == tmp_path / "x" / "sweeper"
    monkeypatch.setenv("SWEEPER_CACHE_DIR", str(tmp_path / "s"))
    assert cache_dir(SweeperConfig()) == tmp_path / "s"
    assert cache_dir(SweeperConfig(cache_dir="~/c")) == tmp_path / "c"


def test_what_is_used_often_is_read_only_where_its_time_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_once(tmp_path / "m", Builder(), print)
    read: list[str] = []
    monkeypatch.setattr(cache, "sha256_of", lambda path: read.append(path.name) or sha256_of(path))
    assert unchanged(tmp_path / "m") is not None
    assert read == []

    # A copied cache has other times: it is read once, and then known again.
    os.utime(tmp_path / "m" / "weights", ns=(1, 1))
    assert unchanged(tmp_path / "m") is not None
    assert unchanged(tmp_path / "m") is not None
    assert read == ["weights"]

    (tmp_path / "m" / "weights").write_bytes(b"x" * 1000)
    assert unchanged(tmp_path / "m") is None
    (tmp_path / "m" / "weights").write_bytes(b"w" * 999)
    assert unchanged(tmp_path / "m") is None


def test_a_folder_is_judged_by_the_check_that_is_given(tmp_path: Path) -> None:
    build = Builder()
    build_once(tmp_path / "m", build, print)
    build_once(tmp_path / "m", build, print, lambda folder: None)
    assert build.calls == 2


def test_what_is_held_or_made_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    assert last_used_s(folder) is None

    def build(partial: Path) -> dict[str, Any]:
        assert is_held(folder)
        assert not remove_unused(folder)
        assert leftovers(folder) == [partial]
        (partial / "weights").write_bytes(b"w")
        return {}

    build_once(folder, build, print)
    assert not is_held(folder)
    with hold(folder), hold(folder):
        assert is_held(folder)
        assert not remove_unused(folder)
    assert verified(folder) is not None
    used = last_used_s(folder)
    assert used is not None and abs(used - time.time()) < 60

    (tmp_path / "m.partial-1").mkdir()
    assert remove_unused(folder)
    assert remove_unused(folder), "to remove what is gone is no error"
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_the_last_use_is_the_time_of_the_hold(tmp_path: Path) -> None:
    with hold(tmp_path / "m"):
        pass
    os.utime(tmp_path / ".m.use", (1, 1))
    assert last_used_s(tmp_path / "m") == 1
    with hold(tmp_path / "m"):
        used = last_used_s(tmp_path / "m")
        assert used is not None and used > 1
