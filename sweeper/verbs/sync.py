"""Bring MLflow up to date with a study's journal.

usage: python -m sweeper sync study=NAME [tracking.uri=http://...]

Idempotent: trials that are already there are left alone, runs left RUNNING by a killed tuner are
closed with the outcome the journal has, and the Pareto tags are set anew.
"""

from __future__ import annotations

import sys

from sweeper.errors import NoFeasibleTrialError
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.summary import study_summary
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.verbs.studies import OpenedStudy, open_study


def run(arguments: list[str]) -> int:
    """Replay the journal; exit code 1 if MLflow could not be reached."""
    study = open_study(arguments)
    # Asking for a sync is asking for MLflow, also of a study that ran without it.
    study.cfg.tracking.enabled = True
    warnings: list[str] = []
    tracker = MlflowTracker(
        study.cfg, study.paths, study.identity, study.paths.name, warn=warnings.append
    )
    report = tracker.sync(study.outcomes)
    if report.error is None and not StudyLock(study.paths.lock).is_held():
        _close(study, tracker)
    if report.error is not None or warnings:
        problem = report.error or warnings[0]
        print(
            f"sweeper: MLflow at {tracker.uri} was not brought up to date: {problem}",
            file=sys.stderr,
        )
        return 1
    print(
        f"{tracker.uri}: {report.logged} trials logged, {report.repaired} repaired, "
        f"{report.present} were there"
    )
    return 0


def _close(study: OpenedStudy, tracker: MlflowTracker) -> None:
    """Tag the front and end the parent run; a study that still runs does so itself."""
    frame = points_frame(study.outcomes)
    try:
        recommendation = recommend(frame, study.cfg.select)
    except NoFeasibleTrialError:
        recommendation = None
    artifacts = [study.paths.report_html, study.paths.pareto_csv, study.paths.study_yaml]
    tracker.finish(study_summary(frame, recommendation, "synchronised", artifacts))
