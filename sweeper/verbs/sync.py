"""Bring MLflow up to date with a study's journal.

usage: python -m sweeper sync study=NAME [studies_dir=DIR] [tracking.uri=http://...]

Idempotent: trials that are already there are left alone, runs left RUNNING by a killed tuner are
closed with the outcome the journal has, and the Pareto tags are set anew. A study that runs and
mirrors itself is left to it.

examples:
  python -m sweeper sync study=NAME
  python -m sweeper sync study=NAME tracking.uri=http://127.0.0.1:5000
  python -m sweeper sync study=NAME studies_dir=/shared/studies

exit codes: 0 up to date, 1 MLflow cannot be reached or the record cannot be read, 2 bad input
"""

from __future__ import annotations

import sys
from dataclasses import replace

from sweeper.errors import NoFeasibleTrialError
from sweeper.export.registry import is_deployable
from sweeper.pareto.cost import Price
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import recommend
from sweeper.report.confirm_text import with_command
from sweeper.report.mlflow_note import told_to_mlflow
from sweeper.report.reproduce import commands
from sweeper.tracking.ending import ending_of
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker, StudySummary
from sweeper.verbs.studies import OpenedStudy, open_study


def run(arguments: list[str]) -> int:
    """Replay the journal; exit code 1 if MLflow could not be reached."""
    study = open_study(arguments)
    # Asking for a sync is asking for MLflow, also of a study that ran without it.
    study.cfg.tracking.enabled = True
    tracker = MlflowTracker(study.cfg, study.paths, study.identity, study.paths.name)
    is_running = StudyLock(study.paths.lock).is_held()
    report = tracker.sync(study.outcomes, None if is_running else _summary(study))
    if report.mirrored_by is not None:
        print(f"nothing to do: {report.mirrored_by}, and brings MLflow up to date itself")
        return 0
    if report.error is not None:
        print(
            f"sweeper: MLflow at {tracker.uri} was not brought up to date: {report.error}",
            file=sys.stderr,
        )
        return 1
    print(
        f"{tracker.uri}: {report.logged} trials logged, {report.repaired} repaired, "
        f"{report.present} were there"
    )
    return 0


def _summary(study: OpenedStudy) -> StudySummary:
    """What ends the parent run, as the study itself would; a study that still runs does so."""
    frame = points_frame(study.outcomes)
    try:
        price = Price.of(study.cfg.hardware)
        recommendation: Recommendation | None = recommend(frame, study.cfg.select, price=price)
    except NoFeasibleTrialError:
        recommendation = None
    cfg, paths = study.cfg, study.paths
    if recommendation is not None:
        recommendation = with_command(recommendation, frame, study.outcomes, cfg, paths.name)
    end = ending_of(paths)
    typed = commands(cfg, paths.name, recommendation, deployable=is_deployable(cfg.engine.name))
    told = told_to_mlflow(
        cfg,
        paths,
        study.outcomes,
        frame,
        recommendation=recommendation,
        ended=end.reason,
        typed=typed,
    )
    return replace(told, status=end.status)
