"""The worker's side of the protocol. Standard library only: a worker imports nothing else of ours.

    import worker_protocol

    def main(worker):
        worker.phase("load")
        worker.progress(3, 24, "layers")
        if not usable(worker.request["model"]):
            raise worker_protocol.WorkerError("unsupported", "why, in one line")
        return {"layers": 24}

    if __name__ == "__main__":
        worker_protocol.run(main)

The request is the first line of standard input, one JSON object. Answers are JSON objects, one a
line, on the standard output the process was born with; what libraries print there goes to standard
error, which is the log. The last event is always `done` or `error`.

A worker whose start is dear stays and is asked again and again, see `converse`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

KINDS = (
    *("no_cuda", "missing", "unsupported", "memory", "calibration", "failed"),
    *("unknown_task", "network", "server"),
)
"""Classes of error. `no_cuda`: it needs a GPU. `missing`: an import. `unsupported`: architecture,
shape or scheme. `memory`: too little of it. `calibration`: too few texts, or too short ones.
`unknown_task`: a name. `network`: data that is not here. `server`: one that it asks."""

LIFELINE = "SWEEPER_LIFELINE_FD"
"""Names a pipe whose other end only the starting process holds: it closes when that one dies."""


class WorkerError(Exception):
    """An expected end.

    Args:
        kind: one of `KINDS`.
        message: one line for the user: what, where, and what to do.
    """

    def __init__(self, kind: str, message: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; one of {', '.join(KINDS)}")
        super().__init__(message)
        self.kind = kind
        self.message = message


class Worker:
    """What `main` is given: the request, and ways to tell how far it is.

    Attributes:
        request: what it was asked for, as JSON gives it.
    """

    def __init__(self, request: dict[str, Any], out: BinaryIO) -> None:
        self.request = request
        self._out = out

    def phase(self, name: str) -> None:
        """Tell that a new part of the work begins, in a word or two ("load", "quantize")."""
        self._say({"event": "phase", "name": name})

    def progress(self, done: int, of: int, what: str) -> None:
        """Tell how much is done, in units of `what` ("layers", "samples")."""
        self._say({"event": "progress", "done": done, "of": of, "what": what})

    def _say(self, event: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(event).encode() + b"\n")
        self._out.flush()


def run(main: Callable[[Worker], dict[str, Any]]) -> NoReturn:
    """Read the request, run `main`, report its result or its error, and exit.

    What `main` raises is reported, never lost: a `WorkerError` as it is, an ImportError as
    `missing`, a lack of memory as `memory`, anything else as `failed`; the trace is in the log.
    """
    with _guarded():
        out = _claim_stdout()
        worker = Worker(_read_request(), out)
        last = _last_event(main, worker)
        try:
            worker._say(last)
        except BrokenPipeError:  # nobody listens any more
            last = {"event": "error"}
    sys.exit(0 if last["event"] == "done" else 1)


Answer = Callable[[dict[str, Any]], dict[str, Any]]


def converse(begin: Callable[[Worker], Answer]) -> NoReturn:
    """Make ready with `begin`, then answer one question a line until nobody asks any more.

    The first line is the request that `begin` sees. That it is ready is a `done` with an empty
    result; after it each question gets exactly one `done` or `error`, in order. An error of one
    question ends nothing.
    """
    with _guarded():
        out, questions = _claim_stdout(), _claim_stdin()
        worker = Worker(json.loads(questions.readline() or b"{}"), out)
        ready: list[Answer] = []

        def make_ready(worker: Worker) -> dict[str, Any]:
            ready.append(begin(worker))
            return {}

        event = _last_event(make_ready, worker)
        try:
            worker._say(event)
            for line in questions if ready else ():
                question = Worker(json.loads(line), out)
                worker._say(_last_event(lambda asked: ready[0](asked.request), question))
        except BrokenPipeError:  # nobody listens any more
            pass
    sys.exit(0 if ready else 1)


def _last_event(main: Callable[[Worker], dict[str, Any]], worker: Worker) -> dict[str, Any]:
    try:
        result = main(worker)
        if not isinstance(result, dict):
            raise TypeError(f"the result must be an object, not {type(result).__name__}")
        json.dumps(result)
    except WorkerError as error:
        return _error(error.kind, error.message)
    except Exception as error:
        traceback.print_exc()
        kind = _kind_of(error)
        return _error(kind, str(error) if kind == "missing" else f"{type(error).__name__}: {error}")
    except SystemExit as error:  # some libraries call sys.exit on bad input
        traceback.print_exc()
        return _error("failed", f"a library ended the program: {error}")
    return {"event": "done", "result": result}


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"event": "error", "kind": kind, "message": " ".join(message.split())}


def _kind_of(error: Exception) -> str:
    if isinstance(error, ImportError):
        return "missing"
    # torch.OutOfMemoryError is known by its name: torch is not imported for it.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    return "failed"


def _read_request() -> dict[str, Any]:
    """The first line of standard input; after it, whoever reads there finds the end of file.

    A library that asks a question (may this code be trusted?) then fails instead of waiting.
    """
    request = json.loads(sys.stdin.buffer.readline() or b"{}")
    _leave_stdin_empty()
    if not isinstance(request, dict):
        raise TypeError(f"the request must be an object, not {type(request).__name__}")
    return request


def _claim_stdin() -> BinaryIO:
    """Keep standard input for questions, so that no library reads one of them."""
    questions = os.fdopen(os.dup(0), "rb")
    _leave_stdin_empty()
    return questions


def _leave_stdin_empty() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _claim_stdout() -> BinaryIO:
    """Keep standard output for the protocol, and send what libraries print to standard error."""
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return protocol


@contextmanager
def _guarded() -> Iterator[None]:
    """Hold a guardian beside the work: it ends the process group when the starter has died.

    A process of its own, forked before anything heavy is loaded: unlike a thread it acts while
    native code holds the interpreter's lock, and unlike a death signal it also ends the children.
    """
    lifeline = os.environ.pop(LIFELINE, "")
    if not lifeline:
        yield
        return
    worker = os.getpid()
    guardian = os.fork()
    if guardian == 0:
        _guard(int(lifeline), worker)
    os.close(int(lifeline))
    try:
        yield
    finally:
        os.kill(guardian, signal.SIGKILL)
        os.waitpid(guardian, 0)


def _guard(lifeline: int, group: int) -> NoReturn:
    """Wait until the lifeline closes, then end the group that `group` leads."""
    try:
        for stream in (0, 1, 2):  # held open here, they would never be seen to end
            os.close(stream)
        os.read(lifeline, 1)
        if os.getpgid(0) == group:
            os.killpg(group, signal.SIGKILL)
        else:  # started by hand, in somebody else's group
            os.kill(group, signal.SIGKILL)
    finally:
        os._exit(0)
