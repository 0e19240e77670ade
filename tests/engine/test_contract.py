"""Every served engine that can run here keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweeper.verdicts import Verdict
from tests.engine.contract import CONTRACT, Case, Launches

CASES = {
    "mock": Case(
        "mock",
        works={"max_num_seqs": 16},
        dies={"gpu_memory_utilization": 0.1},
        verdict=Verdict.CAPACITY,
        options={"start_s": 0.0, "compile_s": 0.0},
    ),
}


@pytest.fixture
def launches(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Launches]:
    made = Launches(CASES[request.param], tmp_path)
    yield made
    made.end()


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("launches", CASES, indirect=True)
def test_the_contract(launches: Launches, clause: Callable[[Launches], None]) -> None:
    clause(launches)
