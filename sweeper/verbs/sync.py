"""Bring MLflow up to date with a study's journal.

usage: python -m sweeper sync study=NAME [tracking.uri=http://...]

Idempotent: trials that are already there are left alone, runs left RUNNING by a killed tuner are
closed with the outcome the journal has.
"""

from __future__ import annotations

import sys

from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.verbs.studies import open_study


def run(arguments: list[str]) -> int:
    """Replay the journal; exit code 1 if MLflow could not be reached."""
    study = open_study(arguments)
    warnings: list[str] = []
    tracker = MlflowTracker(
        study.cfg, study.paths, study.identity, study.paths.name, warn=warnings.append
    )
    tracker.sync(study.outcomes)
    for warning in warnings:
        print(f"sweeper: {warning}", file=sys.stderr)
    if not warnings:
        print(f"{len(study.outcomes)} trials are in MLflow at {tracker.uri}")
    return 1 if warnings else 0
