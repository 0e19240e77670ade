"""The simulator as this process sees it: questions in batches, one warm worker behind them.

ask ──► to_config ──┬──► cannot be modelled ──► Diagnosis
                    └──► worker (started at the first question) ──► figures, or Diagnosis
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sweeper.errors import EngineError
from sweeper.estimate.simulator.answer import SimulatorAnswer, read_answer
from sweeper.estimate.simulator.ask import SimulatorAsk, to_config
from sweeper.estimate.simulator.modelled import UnmodelledError
from sweeper.toolchain.conversation import Conversation
from sweeper.toolchain.worker import EndKind, WorkerEnd, WorkerJob
from sweeper.verdicts import Diagnosis, Phase, Verdict

VERSION = "0.13.0.dev202610270000000085"
"""Of AISimulate, as its worker pins it."""

WORKER = Path(__file__).with_name("workers") / "predict_aisimulate.py"
START_TIMEOUT_S = 300.0
ASK_TIMEOUT_S = 120.0
"""For one prediction; the first on a GPU reads its tables."""

BATCH = 64
"""Predictions in one question: an answer stays far below the longest line of the protocol."""

Prediction = SimulatorAnswer | Diagnosis


class Simulator:
    """Predicts load levels. Leaving the context ends its worker; `close` does the same.

    Its environment is made once by uv, and kept in uv's cache. Safe to share between threads.

    Args:
        log_path: what the worker and the making of its environment print; appended to.
        python: interpreter that has the simulator; None makes its environment.
        tell: told in one line what takes time.
    """

    def __init__(
        self,
        log_path: Path,
        *,
        python: str | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._models: set[str] = set()
        job = WorkerJob(WORKER, {}, log_path, START_TIMEOUT_S, python=python)
        self._worker = Conversation(job, self._hear)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> None:
        """Start the worker, if it does not run.

        Raises:
            EngineError: it cannot be had on this machine.
        """
        with self._lock:
            self._open()

    def close(self) -> None:
        """End the worker. A later question starts another one."""
        with self._lock:
            self._worker.close()

    def predict(self, ask: SimulatorAsk) -> Prediction:
        """One load level of one deployment.

        Returns:
            Figures; or a Diagnosis, where the deployment cannot run, cannot be modelled, or is more
            than the simulator can take. A prediction that kills the worker is one of these, and the
            next question starts another worker.

        Raises:
            EngineError: the simulator cannot be had on this machine.
            ConfigError: it does not know the GPU.
        """
        return self.predict_all([ask])[0]

    def predict_all(self, asks: Sequence[SimulatorAsk]) -> list[Prediction]:
        """Many at once, which saves the way to the worker; answers in the order of the asks.

        Raises: see `predict`.
        """
        found: list[Prediction | None] = [None] * len(asks)
        waiting: list[tuple[int, SimulatorAsk, dict[str, Any]]] = []
        for place, ask in enumerate(asks):
            try:
                waiting.append((place, ask, to_config(ask)))
            except UnmodelledError as error:
                found[place] = _unmodelled(error)
        with self._lock:
            for start in range(0, len(waiting), BATCH):
                part = waiting[start : start + BATCH]
                predicted = self._ask([(ask, config) for _, ask, config in part])
                for (place, _, _), answer in zip(part, predicted, strict=True):
                    found[place] = answer
        return [answer for answer in found if answer is not None]

    def _open(self) -> None:
        if self._worker.is_open:
            return
        self._models.clear()
        end = self._worker.open()
        if end.kind is not EndKind.DONE:
            raise EngineError(f"the simulator cannot be started: {end.message}", _remedy(end))

    def _ask(self, part: Sequence[tuple[SimulatorAsk, dict[str, Any]]]) -> list[Prediction]:
        self._open()
        models = {a.model_key: dict(a.model_config) for a, _ in part if a.model_id is None}
        question = {
            "models": {key: models[key] for key in models if key not in self._models},
            "asks": [
                {"model": ask.model_key, "config": config, "devices": ask.device_count}
                for ask, config in part
            ],
        }
        end = self._worker.ask(question, ASK_TIMEOUT_S * len(part))
        if end.kind is EndKind.DONE:
            self._models |= set(models)
            return [read_answer(told) for told in end.result["answers"]]
        if len(part) == 1:
            return [_fault(end)]
        # One of them is to blame: each for itself, in a new worker where the old one is gone.
        return [answer for one in part for answer in self._ask([one])]

    def _hear(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "phase":
            what = "making its environment" if event["name"] == "environment" else event["name"]
            self._tell(f"simulator: {what}")


def _unmodelled(error: UnmodelledError) -> Diagnosis:
    return Diagnosis(
        Verdict.INFEASIBLE_CONFIG,
        Phase.PLAN,
        f"the simulator cannot model {error.parameter}: {error.reason}",
        f"leave {error.parameter} at the engine's default, or measure it on a real engine",
        learnt={"rule": "unmodelled"},
    )


def _fault(end: WorkerEnd) -> Diagnosis:
    return Diagnosis(
        Verdict.UNKNOWN,
        Phase.START,
        f"the simulator's worker gave no answer: {end.message}",
        "see the simulator's log; leave this combination out if it comes again",
        learnt={"rule": "simulated_fault"},
    )


def _remedy(end: WorkerEnd) -> str:
    if end.kind is EndKind.NO_ENVIRONMENT:
        return (
            "its environment is made once, with uv, from the package index: see that it can be "
            "reached, or name an interpreter that has aisimulate: engine.python=PATH"
        )
    return "see its log; engine.python=PATH names an interpreter that has aisimulate"
