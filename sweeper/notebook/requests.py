"""The requests of launches as one table, read from where the client wrote them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.errors import StudyError
from sweeper.load.records import RequestOutcome
from sweeper.load.requests_file import COLUMNS as WRITTEN
from sweeper.load.requests_file import schema
from sweeper.trial.outcome import TrialOutcome

if TYPE_CHECKING:
    import pandas as pd

FILE = "requests.parquet"
DERIVED = ("ttft_ms", "tpot_ms", "e2e_ms")
COLUMNS = ("trial", "attempt", *WRITTEN, *DERIVED)
"""Columns of `requests_frame`."""


@dataclass(frozen=True)
class Launch:
    """Where the requests of one launch are.

    Attributes:
        trial, attempt: which one.
        folder: of the launch's own files.
        streamed: False where answers came in one piece (beam search): there is only E2E then.
    """

    trial: int
    attempt: int
    folder: Path
    streamed: bool = True

    @classmethod
    def of(cls, outcome: TrialOutcome, folder: Path) -> Launch:
        """The launch of an outcome."""
        decoding = outcome.manifest.get("decoding")
        width = decoding.get("beam_width", 1) if isinstance(decoding, dict) else 1
        return cls(outcome.number, outcome.attempt, folder, streamed=width == 1)


def requests_frame(launches: Iterable[Launch]) -> pd.DataFrame:
    """One row a measured request; see docs/python.md for the columns.

    A launch that left no file (judged without launching, a table's, a study that came without its
    ``trials`` folder) has no rows.

    Raises:
        StudyError: a file is there and cannot be read.
    """
    import pandas as pd

    found = [frame for launch in launches for frame in _read(launch)]
    if not found:
        nobody = Launch(trial=0, attempt=1, folder=Path())
        return _frame(nobody, schema().empty_table())
    return pd.concat(found, ignore_index=True)


def _read(launch: Launch) -> list[pd.DataFrame]:
    """The parts of one launch. Read by name: what is being written has another."""
    path = launch.folder / FILE
    parts = sorted(path.glob("part-*.parquet")) if path.is_dir() else [path]
    return [_frame(launch, _table(launch, part)) for part in parts if part.is_file()]


def _table(launch: Launch, path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # A file of a folder, not a folder: what its path says (`trials=3`) is no column.
        return pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StudyError(
            f"the requests of trial {launch.trial} in {path} cannot be read: {first_line}",
            "restore the file, or remove it: the trial's figures are in trials.jsonl and stay",
        ) from error


def _frame(launch: Launch, table: Any) -> pd.DataFrame:
    """A part as pandas has it. Counts stay counts where some are missing: 8 is not 8.0."""
    import pandas as pd
    import pyarrow as pa

    for field in schema():
        if field.name not in table.column_names:  # an earlier version wrote fewer
            table = table.append_column(field, pa.nulls(len(table), field.type))
    frame = table.select(list(WRITTEN)).to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    frame.insert(0, "trial", launch.trial)
    frame.insert(1, "attempt", launch.attempt)
    return with_latencies(frame, streamed=launch.streamed)


def with_latencies(frame: pd.DataFrame, *, streamed: bool = True) -> pd.DataFrame:
    """The frame with `DERIVED`, in milliseconds, of requests that succeeded; NaN elsewhere.

    The definitions are those of `sweeper.metrics.latencies`.
    """
    is_ok = frame["outcome"] == str(RequestOutcome.OK)
    names = ("scheduled_s", "first_token_s", "finished_s", "output_tokens", "chunks")
    due, first, end, tokens, chunks = (frame[name].astype("float64") for name in names)
    has_first = is_ok & streamed
    several = (tokens >= 2) & (chunks >= 2)
    return frame.assign(
        ttft_ms=((first - due) * 1000).where(has_first),
        tpot_ms=((end - first) / (tokens - 1) * 1000).where(has_first & several),
        e2e_ms=((end - due) * 1000).where(is_ok),
    )
