"""A worker that stays, as a tiny script run by this interpreter: its answers, and its ends."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeper.toolchain.conversation import Conversation
from sweeper.toolchain.worker import EndKind, WorkerJob

SCRIPT = """
import os, sys, time
import worker_protocol

def begin(worker):
    worker.phase("tables")
    print("a library talks")
    if worker.request.get("refuses"):
        raise worker_protocol.WorkerError("missing", "no tables")
    asked = []

    def answer(question):
        asked.append(question)
        if question.get("read"):
            return {"read": sys.stdin.read()}
        if question.get("die"):
            sys.stderr.write("panicked at 'boom'\\n")
            os._exit(3)
        if question.get("sleep"):
            time.sleep(600)
        return {"double": 2 * question["number"], "pid": os.getpid(), "asked": len(asked)}

    return answer

worker_protocol.converse(begin)
"""


def talk(
    folder: Path, events: list[Mapping[str, Any]] | None = None, **request: Any
) -> Conversation:
    script = folder / "made.py"
    script.write_text(textwrap.dedent(SCRIPT))
    job = WorkerJob(script, request, folder / "log", timeout_s=60.0, python=sys.executable)
    return Conversation(job, ([] if events is None else events).append)


def test_one_process_answers_many_questions(tmp_path: Path) -> None:
    events: list[Mapping[str, Any]] = []
    with talk(tmp_path, events) as worker:
        assert worker.open().kind is EndKind.DONE
        answers = [worker.ask({"number": n}, 60.0) for n in (1, 2)]
        failed = worker.ask({}, 60.0)
        after = worker.ask({"number": 3}, 60.0)
        assert worker.ask({"read": True}, 60.0).result == {"read": ""}, "questions are its own"
    assert [answer.result["double"] for answer in answers] == [2, 4]
    assert (failed.kind, failed.message) == (EndKind.FAILED, "KeyError: 'number'")
    assert after.result == {"double": 6, "pid": answers[0].result["pid"], "asked": 4}
    assert not psutil.pid_exists(after.result["pid"])
    assert events == [{"event": "phase", "name": "tables"}]
    assert "a library talks" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("question", "kind", "message"),
    [
        ({"die": True}, EndKind.DIED, "exit code 3 and without a result: panicked at 'boom'"),
        ({"sleep": True}, EndKind.TIMED_OUT, "made.py did not answer within 0.3 s and was ended"),
    ],
)
def test_a_worker_that_is_gone_ends_the_conversation(
    tmp_path: Path, question: dict[str, Any], kind: EndKind, message: str
) -> None:
    with talk(tmp_path) as worker:
        worker.open()
        pid = worker.ask({"number": 1}, 60.0).result["pid"]
        end = worker.ask(question, 0.3 if kind is EndKind.TIMED_OUT else 60.0)
        assert (end.kind, end.message[-len(message) :]) == (kind, message)
        assert not worker.is_open and not psutil.pid_exists(pid)
        with pytest.raises(RuntimeError, match="not open"):
            worker.ask({"number": 1}, 1.0)


def test_what_cannot_make_itself_ready_says_why(tmp_path: Path) -> None:
    with talk(tmp_path, refuses=True) as worker:
        end = worker.open()
        assert (end.kind, end.error, end.message) == (EndKind.FAILED, "missing", "no tables")
        assert not worker.is_open


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    job = WorkerJob(tmp_path / "made.py", {}, tmp_path / "log", 60.0, python="/no/python")
    with Conversation(job, lambda event: None) as worker:
        assert worker.open().kind is EndKind.NO_ENVIRONMENT
