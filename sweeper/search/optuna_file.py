"""Optuna's journal file, written without waiting for the disk.

Optuna's own backend flushes every parameter of every trial to the disk, a dozen times a trial, and
reads back what it has just written. Here the file is derived: `trials.jsonl` is the truth, one
tuner alone writes under the study's lock, and each start writes the file anew. So lines are handed
to the system at once, where a reader finds them and a killed tuner leaves them, and a power cut
loses nothing. The form is Optuna's: its tools (the dashboard, say) read the file as their own.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend
from optuna.trial import FrozenTrial, TrialState

BEST, LATEST = 50, 350
"""Of the trials that a model rests on: TPE sets apart the best tenth, 25 at most, from the rest."""
MODELLED = frozenset({TrialState.COMPLETE, TrialState.PRUNED})


class DerivedJournal(BaseJournalBackend):
    """Optuna's operations as JSON lines in a file of one writer.

    Args:
        path: replaced.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._unread: list[dict[str, Any]] = []
        self._count = 0

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write operations down. See `BaseJournalBackend`."""
        for log in logs:
            text = json.dumps(log, separators=(",", ":"))
            self._file.write(f"{text}\n")
            self._unread.append(json.loads(text))
            self._count += 1

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        """What was written since the storage last asked, which asks for nothing twice."""
        skipped = log_number_from - (self._count - len(self._unread))
        if skipped < 0:
            raise ValueError(f"operation {log_number_from} has been read before")
        unread, self._unread = self._unread[skipped:], []
        return unread


class DerivedStorage(JournalStorage):
    """A journal storage whose asks cost the same whatever the length of the study.

    Every ask of Optuna's goes through all trials for those that wait to be run, and a sampler that
    models (TPE) through all of them again, of which nearly all are old and bad. So the waiting ones
    are known here, and `few` shows a sampler the best and the latest alone.

    Args:
        path: of the journal file; replaced.
        signs: of each objective, +1 where more is better.
    """

    def __init__(self, path: Path, signs: Sequence[int]) -> None:
        super().__init__(DerivedJournal(path))
        self._signs = tuple(signs)
        self._waiting: list[int] = []
        self._latest: deque[int] = deque(maxlen=LATEST)
        self._best: list[list[tuple[float, int]]] = [[] for _ in signs]
        self._shows_few = False

    @contextmanager
    def few(self) -> Iterator[None]:
        """Show a sampler only the `BEST` trials in each objective and the `LATEST` ones."""
        self._shows_few = True
        try:
            yield
        finally:
            self._shows_few = False

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """See `JournalStorage`."""
        trial_id = super().create_new_trial(study_id, template_trial)
        if template_trial is not None and template_trial.state is TrialState.WAITING:
            self._waiting.append(trial_id)
        return trial_id

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """See `JournalStorage`."""
        done = super().set_trial_state_values(trial_id, state, values)
        if state in MODELLED:
            self._latest.append(trial_id)
            for best, sign, value in zip(self._best, self._signs, values or (), strict=False):
                heapq.heappush(best, (sign * value, trial_id))
                if len(best) > BEST:
                    heapq.heappop(best)
        return done

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """See `JournalStorage`."""
        if states == (TrialState.WAITING,):
            waiting = [self.get_trial(trial_id) for trial_id in self._waiting]
            still = [trial for trial in waiting if trial.state is TrialState.WAITING]
            self._waiting = [trial._trial_id for trial in still]
            return still
        if not self._shows_few or deepcopy:
            return super().get_all_trials(study_id, deepcopy, states)
        shown = {*self._latest, *(trial_id for best in self._best for _, trial_id in best)}
        few = [self.get_trial(trial_id) for trial_id in sorted(shown)]
        return [trial for trial in few if states is None or trial.state in states]
