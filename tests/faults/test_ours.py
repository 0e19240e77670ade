"""Faults of our own and of the machine: the trial has an outcome, and the study is told to halt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeper.engine.family import Family
from sweeper.engine.procfs import Identity
from sweeper.trial.progress import Event, PhaseChanged
from sweeper.verdicts import Phase, Verdict
from tests.faults.conftest import Bench
from tests.quantize.fakes import job_for, model_in

MEASURED = [Phase.STOP]


def breaking_in(phase: Phase) -> Callable[[Event], None]:
    """A listener with a bug that shows in one phase."""

    def listen(event: Event) -> None:
        if isinstance(event, PhaseChanged) and event.phase == phase:
            raise ZeroDivisionError("a bug of ours")

    return listen


@pytest.mark.parametrize("phase", [Phase.START, Phase.WARMUP, Phase.LOAD, Phase.QUALITY])
def test_a_bug_of_ours_is_an_outcome(bench: Bench, phase: Phase) -> None:
    """UNKNOWN in the phase in which it struck: retried, and never held against the deployment."""
    ended = bench.run(listener=breaking_in(phase))
    outcome = ended.outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.UNKNOWN, phase), outcome.cause
    assert "a bug of ours" in outcome.cause
    assert outcome.remedy
    assert "ZeroDivisionError" in outcome.evidence
    assert len(outcome.valid_points) == (2 if phase is Phase.QUALITY else 0)
    assert ended.result.halt is None


def test_a_bug_of_ours_while_a_checkpoint_is_made_is_an_outcome(
    bench: Bench, tmp_path: Path
) -> None:
    job = job_for(model_in(tmp_path / "model"), tmp_path / "cache")
    outcome = bench.run(listener=breaking_in(Phase.QUANTIZE), to_make=job).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.UNKNOWN, Phase.QUANTIZE)
    assert "a bug of ours" in outcome.cause


def test_a_bug_of_ours_at_the_stop_keeps_the_verdict_and_halts(bench: Bench) -> None:
    ended = bench.run(listener=breaking_in(Phase.STOP))
    assert ended.outcome.verdict is Verdict.OK
    halt = ended.result.halt
    assert halt is not None
    assert (halt.verdict, halt.phase) == (Verdict.INFRA, Phase.STOP)
    assert halt.remedy


def device(folder: Path) -> tuple[Path, dict[str, object]]:
    """A device with memory that can be held; as the mock's options name it."""
    path = folder / "device.json"
    path.write_text(json.dumps({"total_gib": 80.0, "free_gib": 79.0}))
    return path, {"device_memory": str(path)}


@pytest.mark.parametrize("die_at", ["", "start", "load"])
def test_memory_that_is_held_after_the_end_halts(bench: Bench, die_at: str) -> None:
    _, dials = device(bench.folder)
    ended = bench.run({"keeps_gib": 20.0, "die_at": die_at}, dials=dials, memory_patience_s=0.6)
    assert (
        ended.outcome.verdict
        is ({"": Verdict.OK, "start": Verdict.UNKNOWN, "load": Verdict.CRASH_UNDER_LOAD}[die_at])
    )
    halt = ended.result.halt
    assert halt is not None
    assert (halt.verdict, halt.phase) == (Verdict.INFRA, Phase.STOP)
    assert "20" in halt.cause
    assert halt.remedy


def test_memory_that_comes_back_halts_nothing(bench: Bench) -> None:
    _, dials = device(bench.folder)
    ended = bench.run(dials=dials, memory_patience_s=0.6)
    assert ended.outcome.verdict is Verdict.OK
    assert ended.result.halt is None


def test_a_process_that_outlives_kill_halts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can do that at will, so the family says of one that it did."""
    end = Family.end

    def outlived(family: Family, term_patience_s: float) -> set[Identity]:
        end(family, term_patience_s)
        return {Identity(4_000_000, 1)}

    monkeypatch.setattr(Family, "end", outlived)
    ended = bench.run(may_leave=True)
    assert ended.outcome.verdict is Verdict.OK
    assert ended.result.halt is not None
    assert "4000000" in ended.result.halt.cause
