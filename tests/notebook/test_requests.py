"""Requests of launches as one table: definitions, retries, parts in the making, old files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sweeper
from sweeper.errors import ConfigError, StudyError
from sweeper.load.records import RequestOutcome
from sweeper.load.requests_file import COLUMNS as WRITTEN
from sweeper.metrics.latencies import e2e_s, tpot_s, ttft_s
from sweeper.notebook.requests import COLUMNS, Launch, requests_frame, with_latencies
from sweeper.tracking.paths import StudyPaths
from sweeper.verdicts import Verdict
from tests.factories import outcome
from tests.notebook.conftest import record, write_requests, write_study


def test_requests_come_with_their_trial_and_their_latencies(paths: StudyPaths) -> None:
    frame = sweeper.load_study(paths.root).requests
    assert tuple(frame.columns) == COLUMNS
    assert frame["trial"].tolist() == [1, 1] and frame["concurrency"].tolist() == [8, 8]
    assert frame["ttft_ms"].tolist() == [250.0, 250.0]
    assert frame["e2e_ms"].tolist() == [1000.0, 2000.0]
    assert frame["tpot_ms"].tolist() == [250.0, pytest.approx(1750 / 3)]


def test_one_trial_can_be_read_alone_with_its_retries(tmp_path: Path) -> None:
    outcomes = [outcome(0, verdict=Verdict.INFRA), outcome(0, attempt=2), outcome(1)]
    made = write_study(tmp_path / "mine", outcomes)
    write_requests(made.trial_dir(0), [record(0)])
    write_requests(made.trial_dir(0, 2), [record(0), record(1)])
    write_requests(made.trial_dir(1), [record(0)])
    write_requests(made.trial_dir(7), [record(0)])  # a launch that nobody journalled
    study = sweeper.load_study(made.root)
    assert study.requests_of(0)["attempt"].tolist() == [1, 2, 2]
    assert study.requests["trial"].tolist() == [0, 0, 0, 1]
    with pytest.raises(ConfigError, match="trials are 0 to 1"):
        study.requests_of(7)


def test_what_is_being_written_is_not_read(paths: StudyPaths) -> None:
    folder = paths.trial_dir(1) / "requests.parquet"
    (folder / ".part-00001.parquet.partial").write_bytes(b"PAR1 half a part")
    assert len(sweeper.load_study(paths.root).requests) == 2


def test_a_file_that_cannot_be_read_is_named(paths: StudyPaths) -> None:
    broken = paths.trial_dir(1) / "requests.parquet" / "part-00001.parquet"
    broken.write_bytes(b"no parquet")
    with pytest.raises(StudyError, match=r"trial 1 in .*part-00001"):
        _ = sweeper.load_study(paths.root).requests


def test_a_single_file_with_fewer_columns_is_read_too(tmp_path: Path) -> None:
    """As earlier versions wrote it."""
    folder = tmp_path / "old"
    write_requests(folder, [record(0)])
    whole = pq.read_table(folder / "requests.parquet").drop_columns(["turn", "error"])
    (tmp_path / "3").mkdir()
    pq.write_table(whole, tmp_path / "3" / "requests.parquet")
    old = Launch(3, 1, tmp_path / "3")
    frame = requests_frame([old, Launch(4, 1, folder)])
    assert tuple(frame.columns) == COLUMNS and frame["trial"].tolist() == [3, 4]
    assert frame["turn"].tolist() == [pd.NA, 0] and str(frame["turn"].dtype) == "Int64"


def test_types_do_not_depend_on_what_is_there(tmp_path: Path) -> None:
    write_requests(tmp_path, [record(0, prompt_tokens=None)])
    full, empty = requests_frame([Launch(0, 1, tmp_path)]), requests_frame([])
    assert full.dtypes.tolist() == empty.dtypes.tolist()
    assert full["prompt_tokens"].tolist() == [pd.NA] and full["chunks"].tolist() == [4]


def test_answers_in_one_piece_have_no_first_token(tmp_path: Path) -> None:
    write_requests(tmp_path, [record(0)])
    beam = outcome(0, manifest={"decoding": {"method": "beam", "beam_width": 4}})
    frame = requests_frame([Launch.of(beam, tmp_path)])
    assert frame["ttft_ms"].isna().all() and frame["tpot_ms"].isna().all()
    assert frame["e2e_ms"].tolist() == [1000.0]


times = st.floats(0, 1000)
counts = st.one_of(st.none(), st.integers(0, 100))


@given(
    st.builds(
        record,
        index=st.just(0),
        scheduled_s=times,
        first_token_s=st.one_of(st.none(), times),
        finished_s=times,
        chunks=st.integers(0, 5),
        output_tokens=counts,
        outcome=st.sampled_from(list(RequestOutcome)),
    )
)
def test_latencies_are_those_of_the_metrics(one: object) -> None:
    row = {name: [getattr(one, name, None)] for name in WRITTEN}
    frame = pa.table({**row, "outcome": [str(one.outcome)]}).to_pandas()  # type: ignore[attr-defined]
    made = with_latencies(frame).iloc[0]
    is_ok = one.outcome is RequestOutcome.OK  # type: ignore[attr-defined]
    for name, seconds in (("ttft_ms", ttft_s), ("tpot_ms", tpot_s), ("e2e_ms", e2e_s)):
        wanted = seconds(one) if is_ok else None  # type: ignore[operator]
        assert pd.isna(made[name]) if wanted is None else made[name] == pytest.approx(wanted * 1000)
