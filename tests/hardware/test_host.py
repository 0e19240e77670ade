from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from sweeper.hardware.host import read_host

GIB = 2**30


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_limits_it_is_the_machine(tmp_path: Path) -> None:
    host = read_host(tmp_path)
    assert host.memory_gib == pytest.approx(psutil.virtual_memory().total / GIB)
    assert host.cpu_cores == len(os.sched_getaffinity(0))


def test_the_tightest_limit_of_a_version_2_hierarchy(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/a/b\n")
    put(tmp_path, "sys/fs/cgroup/a/b/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/a/memory.max", f"{GIB}\n")
    put(tmp_path, "sys/fs/cgroup/a/memory.current", f"{GIB * 3 // 4}\n")
    put(tmp_path, "sys/fs/cgroup/a/memory.stat", f"anon 5\ninactive_file {GIB // 4}\n")
    host = read_host(tmp_path)
    assert host.memory_gib == 1.0
    assert host.free_memory_gib == pytest.approx(0.5), "file cache can be given back"


def test_a_version_1_limit(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "4:memory:/docker/x\n1:cpu,cpuacct:/docker/x\n")
    # Inside the container the host's path is not mounted; the limit stands at the root.
    put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", f"{GIB // 2}\n")
    assert read_host(tmp_path).memory_gib == 0.5


def test_a_limit_beyond_the_machine_is_none(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "4:memory:/\n")
    put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert read_host(tmp_path).memory_gib == pytest.approx(psutil.virtual_memory().total / GIB)


@pytest.mark.parametrize(
    ("affinity", "quota", "expected"),
    [(8, "max 100000", 8), (8, "250000 100000", 3), (2, "400000 100000", 2), (8, "5000 100000", 1)],
)
def test_cores_by_affinity_and_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, affinity: int, quota: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(affinity)))
    put(tmp_path, "proc/self/cgroup", "0::/\n")
    put(tmp_path, "sys/fs/cgroup/cpu.max", quota)
    assert read_host(tmp_path).cpu_cores == expected


def test_cores_by_a_version_1_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    put(tmp_path, "proc/self/cgroup", "1:cpu:/\n")
    put(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000")
    put(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
    assert read_host(tmp_path).cpu_cores == 2
    put(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
    assert read_host(tmp_path).cpu_cores == 8


def test_the_processors_name(tmp_path: Path) -> None:
    put(tmp_path, "proc/cpuinfo", "processor : 0\nmodel name\t: Quick CPU 9000\n")
    assert read_host(tmp_path).cpu_model == "Quick CPU 9000"
    assert read_host(tmp_path / "empty").cpu_model


def test_vector_extensions_are_read(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("flags\t\t: fpu avx2 bmi2 avx512f amx_tile\n")
    assert read_host(tmp_path).cpu_features == ("avx2", "avx512f", "amx_tile")
