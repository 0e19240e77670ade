"""The reference of a study, kept in its folder."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.errors import StudyError
from sweeper.quality.reference import Reference, load_reference, save_reference
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome


def stored_reference(paths: StudyPaths, outcomes: Sequence[TrialOutcome]) -> Reference | None:
    """The study's reference; None before the baseline has written it.

    Raises:
        StudyError: it is damaged, or lost while trials were scored against it.
    """
    if paths.reference_json.exists():
        return load_reference(paths.reference_json)
    if any(outcome.quality is not None for outcome in outcomes):
        raise StudyError(
            f"{paths.reference_json} is gone, and the trials so far were scored against it",
            "restore it from a backup, or start a new study with study=NEW_NAME",
        )
    return None


def keep_reference(reference: Reference, paths: StudyPaths) -> None:
    """Write the study's reference. Raises StudyError if it cannot be written."""
    try:
        save_reference(reference, paths.reference_json)
    except OSError as error:
        raise StudyError(
            f"{paths.reference_json} cannot be written: {error.strerror or error}",
            "free disk space or make the folder writable, and run the same command again",
        ) from error
