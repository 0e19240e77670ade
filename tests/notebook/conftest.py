"""A study's folder as a tuner leaves it, made without launching anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sweeper.load.level import LoadLevel
from sweeper.load.records import RequestOutcome, RequestRecord
from sweeper.load.requests_file import RequestsFile
from sweeper.tracking.journal import Journal
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from tests.factories import study as outcomes_of_a_study


def record(index: int, **changes: Any) -> RequestRecord:
    fields: dict[str, Any] = {
        "index": index,
        "scheduled_s": 1.0,
        "sent_s": 1.0,
        "first_token_s": 1.25,
        "finished_s": 2.0,
        "chunks": 4,
        "prompt_tokens": 16,
        "output_tokens": 4,
        "outcome": RequestOutcome.OK,
    }
    return RequestRecord(**{**fields, **changes})


def write_requests(folder: Path, records: list[RequestRecord], concurrency: int = 8) -> None:
    with RequestsFile(folder / "requests.parquet") as file:
        file.begin(0, LoadLevel("closed", len(records), concurrency=concurrency), 0)
        for one in records:
            file.add(one)


def write_study(
    folder: Path, outcomes: list[TrialOutcome], config: dict[str, Any] | None = None
) -> StudyPaths:
    """A study's folder; without a configuration it has no study.yaml."""
    paths = StudyPaths(folder.parent, folder.name)
    paths.create()
    journal = Journal(paths.trials_jsonl)
    for one in outcomes:
        journal.append(one)
    if config is not None:
        paths.study_yaml.write_text(yaml.safe_dump({"identity": {}, "config": config}))
    return paths


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    """Baseline, two better deployments, one out of memory, one refused; requests of trial 1."""
    own = {"slo": {"ttft_p95_ms": None, "e2e_p95_ms": 900.0}, "prefer": "throughput"}
    made = write_study(tmp_path / "studies" / "mine", outcomes_of_a_study(), {"select": own})
    write_requests(made.trial_dir(1), [record(0), record(1, finished_s=3.0)])
    return made
