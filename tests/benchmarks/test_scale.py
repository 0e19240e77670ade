"""The benchmark of long studies, on a short one; and what must not grow with a study."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks import scale
from sweeper.engine.replay.table import Table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scale") / "t.jsonl.gz"
    scale.write_table(path, 400)
    return path


def test_the_made_up_table_is_one(table: Path) -> None:
    loaded = Table.load(table)
    assert len(loaded.rows) == 400
    assert loaded.ladder[-1][1] == 64
    assert loaded.space.parameters["num_speculative_tokens"]["when"] == {"speculative": ["ngram"]}


def test_a_study_is_timed_in_its_parts(table: Path, tmp_path: Path) -> None:
    watch = scale.run_study(table, tmp_path, ["sampler=random", "budget.launches=12"])
    assert len(watch.launch_ms) == 12
    assert len(watch.show_ms) >= 12
    stage = watch.stage(len(watch.show_ms))
    assert stage["trial_ms"] >= stage["launch_ms"] > 0
    assert math.isnan(stage["resident_mib"])


def test_stages_double_and_end_with_the_last() -> None:
    assert scale._stages(1000) == [200, 400, 800, 1000]
    assert scale._stages(50) == [200]
