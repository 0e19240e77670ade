"""The worker's side, in this process where it can be; `test_worker` has it in processes."""

from __future__ import annotations

import ast
import io
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeper.toolchain.side import worker_protocol
from sweeper.toolchain.side.worker_protocol import Worker, WorkerError, _last_event
from sweeper.toolchain.worker import worker_environment


def worker() -> tuple[Worker, io.BytesIO]:
    out = io.BytesIO()
    return Worker({"model": "m"}, out), out


def test_what_is_told_is_a_line_each() -> None:
    told, out = worker()
    told.phase("load")
    told.progress(1, 2, "layers")
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"event": "phase", "name": "load"},
        {"event": "progress", "done": 1, "of": 2, "what": "layers"},
    ]


def test_the_result_is_the_last_event() -> None:
    assert _last_event(lambda told: {"got": told.request}, worker()[0]) == {
        "event": "done",
        "result": {"got": {"model": "m"}},
    }


class OutOfMemoryError(RuntimeError):
    """Named as the one of torch."""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (WorkerError("calibration", "too few\ntexts"), "calibration", "too few texts"),
        (ModuleNotFoundError("No module named 'awq'"), "missing", "No module named 'awq'"),
        (MemoryError("all gone"), "memory", "MemoryError: all gone"),
        (OutOfMemoryError("CUDA"), "memory", "OutOfMemoryError: CUDA"),
        (RuntimeError("boom"), "failed", "RuntimeError: boom"),
        (SystemExit("usage: ..."), "failed", "a library ended the program: usage: ..."),
    ],
)
def test_every_error_is_told(
    error: BaseException, kind: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(_: Worker) -> dict[str, object]:
        raise error

    assert _last_event(main, worker()[0]) == {"event": "error", "kind": kind, "message": message}
    assert ("Traceback" in capsys.readouterr().err) != isinstance(error, WorkerError)


@pytest.mark.parametrize("result", [{"path": object()}, None])
def test_a_result_that_is_no_json_object_is_an_error(result: Any) -> None:
    event = _last_event(lambda _: result, worker()[0])
    assert (event["event"], event["kind"]) == ("error", "failed")


def test_who_reads_standard_input_after_the_request_finds_its_end() -> None:
    code = (
        "import worker_protocol\n"
        "def main(worker):\n"
        "    try: input('trust it?')\n"
        "    except EOFError: return worker.request\n"
        "worker_protocol.run(main)"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code],
        env=worker_environment(os.environ, {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b'{"a": 1}\n')
        running.stdin.flush()  # and it stays open, as a terminal would
        try:
            assert select.select([running.stdout], [], [], 30.0)[0]
            last = json.loads(running.stdout.readline())
        finally:
            running.kill()
    assert last == {"event": "done", "result": {"a": 1}}


def test_an_unknown_kind_is_a_bug() -> None:
    with pytest.raises(ValueError, match="no_cuda"):
        WorkerError("cuda", "none here")


def test_it_is_standard_library_alone() -> None:
    tree = ast.parse(Path(worker_protocol.__file__).read_text())
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names <= set(sys.stdlib_module_names)
