"""Every verdict in every phase: reached by a fault, or with the reason why it cannot be."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import pytest

from sweeper.verdicts import Phase, Verdict
from tests.faults.cells import BY_TRIAL, CANNOT, OTHERWISE, Case, Cell
from tests.faults.conftest import Bench, is_listening
from tests.faults.foreign import taken

CASES = [(cell, case) for cell, cases in BY_TRIAL.items() for case in cases]


def test_every_cell_is_spoken_of_once() -> None:
    spoken_of = [*BY_TRIAL, *OTHERWISE, *CANNOT]
    assert sorted(spoken_of) == sorted(product(Verdict, Phase))


def test_every_reason_is_one_line() -> None:
    assert all(why and "\n" not in why for why in CANNOT.values())
    assert all(cases for cases in BY_TRIAL.values())


@pytest.mark.parametrize(("cell", "case"), CASES, ids=[f"{v}-{p}-{c.name}" for (v, p), c in CASES])
def test_cell(bench: Bench, cell: Cell, case: Case) -> None:
    with taken(case.foreign) if case.foreign else nullcontext() as pick_port:
        ended = bench.run(
            *case.faults,
            dials=case.dials,
            pick_port=pick_port,
            deployment=case.parameters,
            engine_parameters=case.parameters,
            **case.plan,
        )
    outcome = ended.outcome
    assert (outcome.verdict, outcome.phase) == cell, outcome.cause
    assert len(outcome.valid_points) >= case.valid_points, [p.reasons for p in outcome.points]
    assert ended.result.halt is None
    assert not is_listening(ended.port)
    if outcome.verdict is Verdict.OK:
        assert (outcome.cause, outcome.remedy) == ("", "")
        return
    assert outcome.cause
    assert "\n" not in outcome.cause
    assert outcome.remedy
    assert outcome.evidence or not ended.log or case.foreign  # judged before it has said a word
    assert case.says in outcome.cause
    assert case.shows in outcome.evidence
