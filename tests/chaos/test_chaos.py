"""The chaos run that every change must survive; see `tests.chaos.run`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.run import run_chaos

LAUNCHES = 100
"""Half of what `make chaos` launches: the tests of one change must end within half an hour."""
STUDIES = 4


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_studies_survive_random_faults_and_random_kills(tmp_path: Path) -> None:
    """SEED chooses another run of the same kind."""
    seed = int(os.environ.get("CHAOS_SEED", "1"))
    chaos = run_chaos(LAUNCHES, seed, STUDIES, tmp_path)
    print(chaos.summary())
    assert chaos.launches >= LAUNCHES
    assert sum(sum(record.strikes.values()) for record in chaos.records) > STUDIES
    assert not {name: problems for name, problems in chaos.problems.items() if problems}
