"""What may go wrong before there is a server: phase quantize with its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.trial.progress import Event, PhaseChanged
from sweeper.verdicts import Phase, Verdict
from tests.faults.conftest import Bench
from tests.quantize import fakes


@pytest.mark.parametrize(
    ("verdict", "say", "changes", "says"),
    [
        (
            Verdict.INFEASIBLE_CONFIG,
            {"then": "error", "kind": "unsupported", "message": "no such architecture"},
            {},
            "no such architecture",
        ),
        (
            Verdict.INFEASIBLE_CONFIG,
            {"then": "error", "kind": "no_cuda", "message": "no GPU"},
            {},
            "no GPU",
        ),
        (Verdict.INFEASIBLE_CONFIG, {"bits": 3}, {}, "bits 3"),
        (
            Verdict.CAPACITY,
            {"then": "error", "kind": "memory", "message": "MemoryError: all gone"},
            {},
            "all gone",
        ),
        (Verdict.CAPACITY, {"then": "die"}, {}, "killed"),
        (Verdict.CAPACITY, {"takes_s": 60}, {"memory_gib": 0.001}, "GiB it was allowed"),
        (Verdict.INFRA, {}, {"python": "/no/such/python"}, "/no/such/python"),
        (Verdict.INFRA, {"takes_s": 60}, {"timeout_s": 0.2}, "not made in"),
        (Verdict.INFRA, {"then": "raise", "message": "[Errno 28] No space left"}, {}, "No space"),
        (Verdict.UNKNOWN, {"then": "raise", "message": "strange"}, {}, "strange"),
        (Verdict.UNKNOWN, {"then": "die", "signal": 11}, {}, "SIGSEGV"),
        (Verdict.UNKNOWN, {"cut_off": True}, {}, "cannot be used"),
    ],
)
def test_cell(
    *,
    bench: Bench,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    verdict: Verdict,
    say: dict[str, Any],
    changes: dict[str, Any],
    says: str,
) -> None:
    fakes.install(monkeypatch)
    # Not in the folder of the bench: the cache's locks are meant to stay.
    place: Path = tmp_path_factory.mktemp("cache")
    events: list[Event] = []
    job = fakes.job_for(fakes.model_in(place / "model", say), place, **changes)
    outcome = bench.run(to_make=job, listener=events.append).outcome
    assert (outcome.verdict, outcome.phase) == (verdict, Phase.QUANTIZE), outcome.cause
    assert says in outcome.cause
    assert "\n" not in outcome.cause
    assert outcome.remedy
    assert outcome.learnt["rule"]
    assert [event.phase for event in events if isinstance(event, PhaseChanged)] == [Phase.QUANTIZE]
    assert not list(place.glob("checkpoints/[!.]*"))
