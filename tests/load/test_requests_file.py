"""Records go to disk and come back; text never does."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord
from sweeper.load.requests_file import write_requests


def level(concurrency: int, *records: RequestRecord) -> LevelRun:
    return LevelRun(
        "closed", concurrency, records, (0.0, 1.0), 1.0, 0.0, {}, {}, 8, 4, len(records)
    )


def test_records_of_all_levels_are_in_one_file(tmp_path: Path) -> None:
    good = RequestRecord(0, 0.0, 0.0, 0.1, 0.5, 4, 8, 4, RequestOutcome.OK, "length")
    bad = RequestRecord(0, 0.0, 0.0, None, 0.2, 0, None, None, RequestOutcome.ERROR, None, "gone")
    path = tmp_path / "requests.parquet"
    write_requests(path, [level(1, good), level(8, bad)])
    rows = pq.read_table(path).to_pylist()
    assert [(row["level"], row["concurrency"], row["outcome"]) for row in rows] == [
        (0, 1, "ok"),
        (1, 8, "error"),
    ]
    assert rows[1]["first_token_s"] is None and rows[1]["error"] == "gone"
    assert not {"prompt", "text"} & set(rows[0])
    assert list(tmp_path.iterdir()) == [path]


def test_a_trial_without_records_still_has_a_file(tmp_path: Path) -> None:
    write_requests(tmp_path / "requests.parquet", [level(1)])
    assert pq.read_table(tmp_path / "requests.parquet").num_rows == 0
