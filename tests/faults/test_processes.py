"""Children that the server leaves, by kind, however and whenever it ends."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.engine.mock.fault import CHILDREN
from sweeper.verdicts import Verdict
from tests.faults.conftest import Bench

ENDS: dict[str, tuple[dict[str, Any], Verdict]] = {
    "stopped": ({}, Verdict.OK),
    "deaf": ({"hang_at": "stop"}, Verdict.OK),
    "dead_at_start": ({"die_at": "start"}, Verdict.UNKNOWN),
    "dead_under_load": ({"die_at": "load", "exit_code": -9}, Verdict.CRASH_UNDER_LOAD),
}


@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.parametrize("end", ENDS)
def test_no_child_outlives_its_launch(bench: Bench, child: str, end: str) -> None:
    """`Bench.run` holds every launch to leaving nothing; here there is something to leave."""
    fault, verdict = ENDS[end]
    ended = bench.run({"child": child, **fault})
    assert ended.outcome.verdict is verdict, ended.outcome.cause
    assert ended.result.halt is None


def test_all_kinds_at_once(bench: Bench) -> None:
    ended = bench.run(*({"child": child} for child in CHILDREN), {"hang_at": "stop"})
    assert ended.outcome.verdict is Verdict.OK, ended.outcome.cause
