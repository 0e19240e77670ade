"""Optuna's journal without waiting for the disk: the same study, read back by Optuna itself."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from sweeper.search.optuna_file import BEST, LATEST, DerivedJournal, DerivedStorage


def study_of(path: Path, trials: int) -> tuple[optuna.Study, DerivedStorage]:
    storage = DerivedStorage(path, [1])
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(storage=storage, direction="maximize", sampler=sampler)
    for index in range(trials):
        trial = study.ask()
        trial.suggest_int("x", 0, 9)
        study.tell(trial, float(index % 50))
    return study, storage


def test_optuna_reads_the_file_as_its_own(tmp_path: Path) -> None:
    study, _ = study_of(tmp_path / "o.journal", 5)
    study.enqueue_trial({"x": 3})
    other = optuna.load_study(
        study_name=study.study_name,
        storage=JournalStorage(JournalFileBackend(str(tmp_path / "o.journal"))),
    )
    assert [t.state for t in other.trials] == [TrialState.COMPLETE] * 5 + [TrialState.WAITING]
    assert [t.params for t in other.trials[:5]] == [t.params for t in study.trials[:5]]


def test_what_waits_is_run_once_and_in_order(tmp_path: Path) -> None:
    study, _ = study_of(tmp_path / "o.journal", 1)
    for value in (3, 4):
        study.enqueue_trial({"x": value})
    assert [study.ask().suggest_int("x", 0, 9) for _ in range(2)] == [3, 4]
    assert study.ask().number == 3


def test_a_sampler_may_be_shown_the_best_and_the_latest_alone(tmp_path: Path) -> None:
    total = BEST + LATEST + 30
    study, storage = study_of(tmp_path / "o.journal", total)
    with storage.few():
        few = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    assert len(few) <= BEST + LATEST
    assert {trial.number for trial in few} >= set(range(total - LATEST, total))
    assert sum(trial.value == 49.0 for trial in few) == sum(
        trial.value == 49.0 for trial in study.trials
    )
    assert len(study.trials) == total


def test_nothing_is_read_twice(tmp_path: Path) -> None:
    journal = DerivedJournal(tmp_path / "o.journal")
    journal.append_logs([{"op_code": 0}, {"op_code": 1}])
    assert list(journal.read_logs(0)) == [{"op_code": 0}, {"op_code": 1}]
    journal.append_logs([{"op_code": 2}])
    assert list(journal.read_logs(2)) == [{"op_code": 2}]
    with pytest.raises(ValueError, match="read before"):
        journal.read_logs(0)
