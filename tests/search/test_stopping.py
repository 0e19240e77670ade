from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.errors import StudyError
from sweeper.search.stopping import check_baseline
from sweeper.tracking.paths import StudyPaths
from sweeper.verdicts import Phase, Verdict
from tests.factories import outcome


@pytest.mark.parametrize(
    ("phase", "log"), [(Phase.START, "server.log"), (Phase.QUANTIZE, "quantize.log")]
)
def test_the_log_of_the_phase_is_named(tmp_path: Path, phase: Phase, log: str) -> None:
    failed = outcome(0, verdict=Verdict.UNKNOWN, phase=phase, attempt=2)
    with pytest.raises(StudyError) as problem:
        check_baseline(failed, StudyPaths(tmp_path, "s"))
    assert problem.value.remedy.endswith(f"Log: {tmp_path / 's/trials/0/attempt-2' / log}")
