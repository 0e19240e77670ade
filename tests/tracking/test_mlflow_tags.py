"""Tags of a study's runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config.schema import SweeperConfig
from sweeper.tracking.mlflow_tags import StudyTags
from sweeper.tracking.paths import StudyPaths


@pytest.mark.parametrize(
    ("engine", "numbers"),
    [
        ({"name": "simulate", "predicted": True}, "predicted"),
        ({"name": "vllm", "predicted": False}, "measured"),
        ({"name": "vllm"}, "measured"),
        ({"name": "replay", "distribution": "table"}, "replayed"),
        ({"name": "replay", "distribution": "table", "predicted": True}, "predicted"),
    ],
)
def test_every_run_says_whether_its_numbers_were_measured(
    engine: dict[str, object], numbers: str, tmp_path: Path
) -> None:
    tags = StudyTags.of({"engine": engine}, SweeperConfig(), "s")
    for told in (tags.of_run(), tags.of_parent(StudyPaths(tmp_path, "s"))):
        assert told["sweeper.numbers"] == numbers
