"""Bring MLflow up to date with a study's journal.

usage: python -m sweeper sync study=NAME [tracking.uri=http://...]

Idempotent: trials that are already there are left alone, runs left RUNNING by a killed tuner are
closed with the outcome the journal has, and the Pareto tags are set anew. A study that runs and
mirrors itself is left to it.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from sweeper.errors import NoFeasibleTrialError
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.summary import study_summary
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
    """What ends the parent run; a study that still runs does so itself."""
    frame = points_frame(study.outcomes)
    try:
        recommendation = recommend(frame, study.cfg.select)
    except NoFeasibleTrialError:
        recommendation = None
    artifacts = [study.paths.report_html, study.paths.pareto_csv, study.paths.study_yaml]
    end = ending_of(study.paths)
    return replace(study_summary(frame, recommendation, end.reason, artifacts), status=end.status)
