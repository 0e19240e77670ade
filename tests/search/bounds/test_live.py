from __future__ import annotations

from pathlib import Path

from sweeper.search.bounds.live import LearntBounds
from sweeper.search.bounds.store import write_dropped
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Event, Note
from sweeper.verdicts import Verdict
from tests.factories import outcome
from tests.search.bounds.journal import baseline, failed

UTIL = "gpu_memory_utilization"


def watched(path: Path, journal: list[TrialOutcome]) -> tuple[LearntBounds, list[str]]:
    heard: list[str] = []

    def listen(event: Event) -> None:
        assert isinstance(event, Note)
        heard.append(event.text)

    return LearntBounds(path, lambda: journal, listen), heard


def test_what_was_known_is_not_told_again_and_what_is_new_is(tmp_path: Path) -> None:
    journal = [baseline(), failed(1, {UTIL: 0.5}, "no_kv_memory")]
    bounds, heard = watched(tmp_path / "d.json", journal)
    assert bounds.look().refusing({UTIL: 0.4}) is not None
    assert heard == []
    journal.append(failed(2, {UTIL: 0.99}, "device_memory_taken"))
    bounds.look()
    bounds.look()
    assert len(heard) == 1
    assert "device_memory_taken-2" in heard[0]
    journal.append(outcome(3, deployment={UTIL: 0.4}))
    assert bounds.look().refusing({UTIL: 0.4}) is None
    assert "trial 3 worked inside its region" in heard[1]


def test_a_drop_counts_at_once_and_so_does_a_restore(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    bounds, heard = watched(path, [baseline(), failed(1, {UTIL: 0.5}, "no_kv_memory")])
    write_dropped(path, ["no_kv_memory-1"])
    assert bounds.look().refusing({UTIL: 0.4}) is None
    assert "was dropped by its user" in heard[0]
    write_dropped(path, [])
    assert bounds.look().refusing({UTIL: 0.4}) is not None


def test_a_file_damaged_meanwhile_leaves_the_last_choice_and_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    write_dropped(path, ["no_kv_memory-1"])
    bounds, heard = watched(path, [baseline(), failed(1, {UTIL: 0.5}, "no_kv_memory")])
    path.write_text("{")
    for _ in range(3):
        assert bounds.look().refusing({UTIL: 0.4}) is None
    assert len(heard) == 1
    assert str(path) in heard[0]


def test_devices_that_cannot_talk_are_told_loudly(tmp_path: Path) -> None:
    journal = [baseline()]
    bounds, heard = watched(tmp_path / "d.json", journal)
    for attempt in (1, 2):
        journal.append(
            outcome(
                1,
                deployment={"tensor_parallel_size": 2},
                verdict=Verdict.INFRA,
                attempt=attempt,
                learnt={"rule": "nccl"},
            )
        )
    bounds.look()
    assert heard[0].startswith("WARNING: no longer launched (nccl-1): tensor_parallel_size > 1")
