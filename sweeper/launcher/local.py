"""Launches on this machine, one after the other."""

from __future__ import annotations

from sweeper.engine.protocol import Engine
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Listener
from sweeper.trial.run import TrialResult, run_trial


class LocalLauncher:
    """Runs a plan in this process; the engine is a child process of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def run(self, plan: TrialPlan, listener: Listener) -> TrialResult:
        """Run one trial to its outcome. Blocks; KeyboardInterrupt stops the server first."""
        return run_trial(plan, self._engine, listener)
