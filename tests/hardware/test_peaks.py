"""Peaks measured by a probe in another interpreter, and remembered."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import HardwareConfig
from sweeper.hardware import peaks_probe
from sweeper.hardware.datasheet import Peaks
from sweeper.hardware.detect import to_manifest
from sweeper.hardware.facts import REMOTE, HardwareFacts
from sweeper.hardware.peaks import (
    CACHE_FILE,
    MEASUREMENTS,
    measured_peaks,
    with_measured_peaks,
    with_peaks,
)

CPU = HardwareFacts("cpu", "EPYC", 1, 23.0)
NO_TORCH = importlib.util.find_spec("torch") is None


def interpreter(folder: Path, *answers: dict[str, Any] | str) -> str:
    """A program in an interpreter's place: each measurement gives the next answer, then the last.

    Asked to identify itself it answers the first entry's torch. Its calls are counted in `calls`.
    """
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in answers]
    script = folder / "python"
    script.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        f"lines, count = {lines!r}, pathlib.Path({str(folder / 'calls')!r})\n"
        "done = len(count.read_text()) if count.exists() else 0\n"
        "if sys.argv[-1] == 'identify':\n"
        "    print(lines[0])\n"
        "else:\n"
        "    count.write_text('x' * (done + 1))\n"
        "    print(lines[min(done, len(lines) - 1)])\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return str(script)


def calls(folder: Path) -> int:
    path = folder / "calls"
    return len(path.read_text(encoding="utf-8")) if path.exists() else 0


def answer(bandwidth: float, **more: Any) -> dict[str, Any]:
    return {"torch": "2.13.0", "bandwidth_gbs": bandwidth, "tflops_bf16": 0.5, **more}


@pytest.mark.skipif(NO_TORCH, reason="torch is not installed in this environment")
def test_this_machine_is_measured(tmp_path: Path) -> None:
    peaks = measured_peaks(None, device="cpu", cache_dir=tmp_path)
    assert peaks is not None
    assert peaks.source == "measured"
    assert 0.1 < peaks.bandwidth_gbs < 3000
    assert peaks.tflops_float32 is not None
    assert 1e-5 < peaks.tflops_float32 < 200  # however busy the machine is
    assert "torch" in (tmp_path / CACHE_FILE).read_text(encoding="utf-8")


def test_the_best_of_several_occasions_is_kept_and_then_no_more_are_taken(tmp_path: Path) -> None:
    one, busy = answer(30.0, tflops_float32=0.1), answer(5.0, tflops_float32=0.2)
    python = interpreter(tmp_path, one, busy)
    cache = tmp_path / "cache"
    found = [measured_peaks(python, device="cpu", cache_dir=cache) for _ in range(6)]
    assert calls(tmp_path) == MEASUREMENTS
    assert {peaks.bandwidth_gbs for peaks in found if peaks} == {30.0}
    assert found[-1] == Peaks(30.0, 0.5, 0.2, source="measured")
    assert [path.name for path in cache.iterdir()] == [CACHE_FILE]  # no leavings


def test_another_torch_is_another_measurement(tmp_path: Path) -> None:
    for torch in ("2.12.0", "2.13.0"):
        folder = tmp_path / torch
        folder.mkdir()
        python = interpreter(folder, answer(30.0) | {"torch": torch})
        for _ in range(5):
            measured_peaks(python, device="cpu", cache_dir=tmp_path)
        assert calls(folder) == MEASUREMENTS


@pytest.mark.parametrize(
    "said",
    [
        {"missing": "torch"},
        {"torch": "2.13.0", "missing": "cuda"},
        {"torch": "2.13.0", "bandwidth_gbs": 0.0, "tflops_bf16": 1.0},
        {"torch": "2.13.0", "bandwidth_gbs": "fast", "tflops_bf16": 1.0},
        '{"torch": "2.13.0", "bandwidth_gbs": NaN, "tflops_bf16": 1.0}',
        "Traceback",
        "[]",
        "",
    ],
)
def test_no_answer_is_no_peaks(tmp_path: Path, said: dict[str, Any] | str) -> None:
    python = interpreter(tmp_path, said)
    assert measured_peaks(python, device="cpu", cache_dir=tmp_path / "cache") is None
    assert not (tmp_path / "cache").exists()


def test_no_interpreter_and_no_torch_are_no_peaks(tmp_path: Path) -> None:
    assert measured_peaks(str(tmp_path / "none"), device="cpu", cache_dir=None) is None


def test_a_probe_that_hangs_is_given_up(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(
        '#!/bin/sh\n[ "$3" = identify ] && echo \'{"torch": "2"}\' && exit 0\nexec sleep 60\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    assert measured_peaks(str(script), device="cpu", cache_dir=None, timeout_s=0.3) is None


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"x": 1}'])
def test_a_broken_memory_is_measured_over(tmp_path: Path, content: str) -> None:
    python = interpreter(tmp_path, answer(30.0))
    (tmp_path / CACHE_FILE).write_text(content, encoding="utf-8")
    assert measured_peaks(python, device="cpu", cache_dir=tmp_path) is not None
    stored = json.loads((tmp_path / CACHE_FILE).read_text(encoding="utf-8"))
    assert any(key.startswith("cpu: ") for key in stored)


def test_a_folder_that_cannot_be_written_costs_only_the_memory(tmp_path: Path) -> None:
    python = interpreter(tmp_path, answer(30.0))
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert measured_peaks(python, device="cpu", cache_dir=tmp_path / "file") is not None


def test_peaks_go_into_the_facts_and_the_manifest() -> None:
    facts = with_peaks(CPU, Peaks(30.0, 0.01, 0.2, 33.0, source="measured"))
    assert (facts.bandwidth_gbs, facts.tflops_bf16, facts.tflops_float32) == (30.0, 0.01, 0.2)
    assert (facts.cache_mib, facts.peaks_source) == (33.0, "measured")
    assert to_manifest(facts)["peaks_source"] == "measured"
    assert to_manifest(facts)["tflops_float32"] == 0.2
    assert with_peaks(CPU, None) is CPU
    assert "peaks_source" not in to_manifest(CPU)


def test_only_what_is_here_and_not_given_is_measured(tmp_path: Path) -> None:
    def asked(facts: HardwareFacts, cfg: HardwareConfig) -> HardwareFacts:
        python = interpreter(tmp_path, answer(30.0))
        return with_measured_peaks(facts, cfg, python=python, cache_dir=None)

    described = HardwareFacts("cuda", "H100", 1, 80.0, bandwidth_gbs=3350.0, detected=False)
    assert asked(described, HardwareConfig(kind="cuda")) is described
    assert asked(CPU, HardwareConfig(bandwidth_gbs=20.0)) is CPU
    remote = HardwareFacts(REMOTE, "far", 1, 0.0)
    assert asked(remote, HardwareConfig()) is remote
    assert calls(tmp_path) == 0
    for kind in ("auto", "cpu"):
        assert asked(CPU, HardwareConfig(kind=kind)).bandwidth_gbs == 30.0


def test_caches_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu in (0, 1):
        for level, (kind, size, shared) in enumerate(
            [
                ("Instruction", "32K", str(cpu)),
                ("Data", "1024K", str(cpu)),
                ("Unified", "8192K", "0-1"),
            ]
        ):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{level}"
            folder.mkdir(parents=True)
            entries = {"type": kind, "level": str(level), "shared_cpu_list": shared, "size": size}
            for name, text in entries.items():
                (folder / name).write_text(text + "\n", encoding="ascii")
    monkeypatch.setattr(peaks_probe, "_CACHES", tmp_path)
    monkeypatch.setattr(peaks_probe.os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert peaks_probe.cpu_caches() == 10.0
    monkeypatch.setattr(peaks_probe, "_CACHES", tmp_path / "none")
    assert peaks_probe.cpu_caches() is None


def test_identifying_does_not_load_torch(capsys: pytest.CaptureFixture[str]) -> None:
    before = "torch" in sys.modules
    assert peaks_probe.main(["identify"]) == 0
    assert ("torch" in sys.modules) == before
    assert set(json.loads(capsys.readouterr().out)) <= {"torch", "missing"}
