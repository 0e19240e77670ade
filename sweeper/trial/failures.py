"""What to make of an exception that reaches a trial: it ends with an outcome all the same."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from sweeper.engine.protocol import StopFailure
from sweeper.errors import EngineError
from sweeper.redaction import redact
from sweeper.trial.progress import Note
from sweeper.trial.state import TrialState
from sweeper.verdicts import Diagnosis, Phase, Verdict

ERROR_FILE = "error.txt"
MAX_MESSAGE_CHARS = 300

_OF_THE_MACHINE = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.EACCES,
        errno.EPERM,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
        errno.ESTALE,
    }
)


def at_start(problem: Exception, state: TrialState) -> Diagnosis:
    """A launch that could not even be tried is a fault of the surroundings, or of ours."""
    if isinstance(problem, StopFailure):
        state.halt = problem.diagnosis
    if isinstance(problem, EngineError):
        return Diagnosis(Verdict.INFRA, Phase.START, problem.message, problem.remedy)
    return unexpected(problem, state)


def at_stop(problem: Exception, state: TrialState) -> Diagnosis:
    """Why nothing may be launched after a stop that failed."""
    if isinstance(problem, StopFailure):
        return problem.diagnosis
    if isinstance(problem, EngineError):
        return Diagnosis(Verdict.INFRA, Phase.STOP, problem.message, problem.remedy)
    _keep_traceback(problem, state)
    return Diagnosis(
        Verdict.INFRA,
        Phase.STOP,
        f"the server could not be stopped for certain: {_told(problem)}",
        f"see that nothing of it runs, and {_remedy(state)}",
    )


def unexpected(problem: Exception, state: TrialState) -> Diagnosis:
    """A fault of this program or of a library: retried, and never the deployment's.

    Its traceback is written into the trial's folder.
    """
    if isinstance(problem, OSError) and problem.errno in _OF_THE_MACHINE:
        return Diagnosis(
            Verdict.INFRA,
            state.phase,
            _told(problem),
            "free disk space, or make the study's folder writable",
            _keep_traceback(problem, state),
            {"rule": "disk_full"} if problem.errno in {errno.ENOSPC, errno.EDQUOT} else {},
        )
    return Diagnosis(
        Verdict.UNKNOWN,
        state.phase,
        f"fault of the tuner: {_told(problem)}",
        _remedy(state),
        _keep_traceback(problem, state),
    )


def _keep_traceback(problem: Exception, state: TrialState) -> str:
    """Write the traceback to the trial's folder, and return its end."""
    text = redact("".join(traceback.format_exception(problem)))
    path = state.plan.run_dir / ERROR_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        state.listener(Note(f"{path} cannot be written: {error.strerror or error}"))
    return text[-2000:]


def _told(problem: Exception) -> str:
    """Type, message and place of an exception, one line."""
    message = " ".join(redact(str(problem)).split())[:MAX_MESSAGE_CHARS]
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(problem).__name__}{f': {message}' if message else ''}{where}"


def _remedy(state: TrialState) -> str:
    return f"report this with {ERROR_FILE} of the trial's folder ({state.plan.run_dir})"
