# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#     "aisimulate==0.13.0.dev202610270000000085",
# ]
# ///
"""Predictions with AISimulate: one warm process, questions by JSON lines.

A question is ``{"models": {digest: config.json}, "asks": [{"model": digest, "config": {...},
"devices": 1}]}``; its answer ``{"answers": [...]}`` has one entry an ask, in order: figures, or
what the simulator says against it.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import worker_protocol
from worker_protocol import Worker, WorkerError

sys.path.append(str(Path(__file__).resolve().parent / "side"))
import predicted_figures


def begin(worker: Worker) -> Callable[[dict[str, Any]], dict[str, Any]]:
    worker.phase("load the simulator")
    try:
        from aisimulate import CorePredictionConfig, EngineReplayRunnerFactory
        from aisimulate.predict import run_prediction
        from aisimulate.sweeper.replay import ReplayOutputRequirements
    except ImportError as error:
        raise WorkerError("missing", f"the simulator cannot be imported: {error}") from error
    logging.getLogger().setLevel(logging.ERROR)
    factory = EngineReplayRunnerFactory()
    wanted = ReplayOutputRequirements(capture_per_request=True, capture_memory_diagnostics=True)
    folders = Folders()

    def predict(ask: dict[str, Any]) -> dict[str, Any]:
        config = ask["config"]
        engine = {**config["engine"], "model": folders.of(ask["model"])}
        try:
            checked = CorePredictionConfig.model_validate({**config, "engine": engine})
            found = run_prediction(
                checked, stack="engine", runner_factory=factory, output_requirements=wanted
            )
        except Exception as error:  # whatever it says of one deployment is an answer
            return {"refused": f"{type(error).__name__}: {error}"}
        closed = config["traffic"]["load"]["type"] == "concurrency"
        told: dict[str, Any] = predicted_figures.answer(
            found.summary, found.native, devices=ask["devices"], closed=closed
        )
        return told

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        for digest, config in question["models"].items():
            folders.keep(digest, config)
        return {"answers": [predict(ask) for ask in question["asks"]]}

    return answer


class Folders:
    """Models as folders with a config.json, which is all that the simulator reads of one."""

    def __init__(self) -> None:
        self._work = tempfile.TemporaryDirectory()
        self._kept: dict[str, str] = {}

    def keep(self, digest: str, config: dict[str, Any]) -> None:
        folder = Path(self._work.name) / digest
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config))
        self._kept[digest] = str(folder)

    def of(self, model: str) -> str:
        """The folder of a digest; what was never kept is one of the simulator's own ids."""
        return self._kept.get(model, model)


if __name__ == "__main__":
    worker_protocol.converse(begin)
