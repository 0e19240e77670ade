"""The benchmark of our own overhead: its sums, and that it runs against the product."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import overhead


def write_journal(folder: Path, verdict: str = "OK") -> None:
    timings = {"start": 3.5, "ready": 3.0, "warmup": 1.0, "load": 4.0, "stop": 0.5, "total": 9.2}
    trial = {"number": 0, "verdict": verdict, "cause": "no room", "timings_s": timings}
    (folder / "trials.jsonl").write_text(json.dumps(trial) + "\n")


def test_what_is_not_the_engines_is_ours(tmp_path: Path) -> None:
    write_journal(tmp_path)
    [launch] = overhead.read_launches(tmp_path, [100.0, 110.0])
    assert launch.ours(own_stop=0.3) == pytest.approx(10.0 - 3.0 - 5.0 - 0.3)
    assert (launch.before, launch.stop) == (0.5, 0.5)
    assert launch.between == pytest.approx(0.8)


def test_a_trial_that_failed_has_no_overhead(tmp_path: Path) -> None:
    write_journal(tmp_path, "CAPACITY")
    with pytest.raises(SystemExit, match="no room"):
        overhead.read_launches(tmp_path, [100.0, 110.0])


def test_it_runs_on_the_mock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = tmp_path / "overhead.json"
    overhead.main(["--launches", "2", "--json", str(told)])
    data = json.loads(told.read_text())
    assert len(data["launches"]) == 2
    # Beside other work the figure says nothing; that it is no sum of seconds says the accounting.
    assert 0.0 < min(data["ours_s"]) < 10.0
    assert "median" in capsys.readouterr().out
