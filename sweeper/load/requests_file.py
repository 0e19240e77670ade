"""Records of a trial's requests on disk, written while they come: times and counts, never text.

``requests.parquet`` is a folder of parts, which pandas, pyarrow, polars and duckdb read like one
file. A part is written whole and then moved into its place, so whatever ends the tuner leaves a
folder that can be read; a single file would get its table of contents only at the end.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from sweeper.load.level import LoadLevel
from sweeper.load.records import RequestOutcome, RequestRecord

PART_ROWS = 1000
PART_EVERY_S = 10.0

_LEVEL_COLUMNS = ("level", "load", "concurrency", "rate_per_s", "repeat")
_INTEGERS = frozenset(
    {
        "level",
        "concurrency",
        "repeat",
        "index",
        "chunks",
        "prompt_tokens",
        "output_tokens",
        "input_tokens_asked",
        "output_tokens_asked",
        "turn",
    }
)
_WORDS = frozenset({"load", "outcome", "finish_reason", "error"})
_RECORD_COLUMNS = tuple(item.name for item in fields(RequestRecord))
COLUMNS = (*_LEVEL_COLUMNS, *_RECORD_COLUMNS)


class RequestsFile:
    """Takes records one by one; use it as a context manager, so that the last ones are written.

    Columns are ``level`` (position in the ladder), ``load`` (the level's name), ``concurrency``,
    ``rate_per_s``, ``repeat`` (0 for the first), and the fields of `RequestRecord`.

    Args:
        folder: ``requests.parquet`` of a trial. What an earlier attempt left there is removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if folder.is_dir():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        self._schema = schema()
        self._warm()
        self._parts = 0
        self._rows: list[tuple[Any, ...]] = []
        self._flushed_s = time.monotonic()
        self._level: tuple[Any, ...] = ()

    def _warm(self) -> None:
        """Import and prepare what writes now: the first write takes a third of a second, which
        would stop the client while it takes the time of requests."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(self._schema.empty_table(), pa.BufferOutputStream())

    def begin(self, position: int, level: LoadLevel, repeat: int) -> None:
        """The following records are of this level; those of the one before are written."""
        self.flush()
        self._level = (position, level.name, level.concurrency, level.rate_per_s, repeat)

    def add(self, record: RequestRecord) -> None:
        """Note a record; writes a part when there are many, or after a while."""
        self._rows.append((*self._level, *(getattr(record, name) for name in _RECORD_COLUMNS)))
        waited_s = time.monotonic() - self._flushed_s
        if len(self._rows) >= PART_ROWS or waited_s >= PART_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write what has been noted as one more part. Raises OSError if the disk refuses."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._flushed_s = time.monotonic()
        if not self._rows:
            return
        columns = [
            pa.array(_plain(name, values), type=self._schema.field(name).type)
            for name, values in zip(COLUMNS, zip(*self._rows, strict=True), strict=True)
        ]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        path = self._folder / f"part-{self._parts:05d}.parquet"
        partial = path.with_name(f".{path.name}.partial")  # readers pass over names with a dot
        pq.write_table(table, partial)
        partial.replace(path)
        self._parts += 1
        self._rows = []

    def __enter__(self) -> RequestsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()


def _plain(name: str, values: tuple[Any, ...]) -> list[Any]:
    if name == "outcome":
        return [RequestOutcome(value).value for value in values]
    return list(values)


def schema() -> Any:
    """Names and types of the columns, as pyarrow has them."""
    import pyarrow as pa

    kinds = {name: pa.int64() for name in _INTEGERS} | {name: pa.string() for name in _WORDS}
    return pa.schema([(name, kinds.get(name, pa.float64())) for name in COLUMNS])
