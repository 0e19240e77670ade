"""Records of a trial's requests on disk: times and counts, never text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord


def write_requests(path: Path, runs: Sequence[LevelRun]) -> None:
    """Write the records of all levels to one parquet file, replacing it in one step.

    Columns are the fields of `RequestRecord` after ``level`` (position in the ladder) and
    ``concurrency``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [_row(level, run, record) for level, run in enumerate(runs) for record in run.records]
    table = pa.Table.from_pylist(rows, schema=_schema(pa))
    partial = path.with_name(path.name + ".partial")
    pq.write_table(table, partial)
    partial.replace(path)


def _row(level: int, run: LevelRun, record: RequestRecord) -> dict[str, Any]:
    row = {item.name: getattr(record, item.name) for item in fields(record)}
    row["outcome"] = RequestOutcome(record.outcome).value
    return {"level": level, "concurrency": run.concurrency, **row}


def _schema(pa: Any) -> Any:
    integers = {"level", "concurrency", "index", "chunks", "prompt_tokens", "output_tokens"}
    words = {"outcome", "finish_reason", "error"}
    names = ["level", "concurrency", *(item.name for item in fields(RequestRecord))]
    kinds = {name: pa.int64() for name in integers} | {name: pa.string() for name in words}
    return pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
