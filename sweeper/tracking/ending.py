"""How a study's last run ended, kept beside its journal so that MLflow can be told later.

The file is there between runs only: a run takes it away when it begins, so that a killed tuner
leaves none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from sweeper.errors import StudyError
from sweeper.tracking.paths import StudyPaths, atomic_write_text

FINISHED, FAILED, KILLED = "FINISHED", "FAILED", "KILLED"


@dataclass(frozen=True)
class Ending:
    """The end of a run.

    Attributes:
        status: FINISHED (budget used, space exhausted), FAILED (an error) or KILLED (stopped).
        reason: one line.
    """

    status: str
    reason: str


def status_of(ended: str) -> str:
    """The status of a run by the line that says why it ended (``stopped: KeyboardInterrupt``)."""
    if not ended.startswith("stopped"):
        return FINISHED
    return FAILED if ": " in ended and not ended.endswith("KeyboardInterrupt") else KILLED


def note(path: Path, ending: Ending) -> None:
    """Write it. Losing it costs a word in MLflow, so that a full disk is no reason to fail."""
    with suppress(StudyError):
        atomic_write_text(path, json.dumps(asdict(ending)) + "\n")


def clear(path: Path) -> None:
    """A run begins."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def ending_of(paths: StudyPaths) -> Ending:
    """How a study that nobody works on ended."""
    try:
        return Ending(**json.loads(paths.ended_json.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass
    if _reported_since_the_last_trial(paths):
        # Sweeper 0.1 left no note, but wrote its report after the last trial.
        return Ending(FINISHED, "synchronised")
    return Ending(KILLED, "the tuner was killed")


def _reported_since_the_last_trial(paths: StudyPaths) -> bool:
    try:
        return paths.report_html.stat().st_mtime >= paths.trials_jsonl.stat().st_mtime
    except OSError:
        return False
