"""Whether a server still serves: asked wherever it is, and of an engine without one too."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sweeper.engine.protocol import BatchJob, BatchRequest, BatchResult, RunningServer
from sweeper.trial import vital


class Handler(BaseHTTPRequestHandler):
    status = 200
    answer = b'{"choices": [{}]}'
    seen: list[tuple[str, str | None, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).seen.append((self.path, self.headers.get("Authorization"), body))
        self.send_response(type(self).status)
        self.end_headers()
        self.wfile.write(type(self).answer)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def listening(tls: ssl.SSLContext | None = None, **dials: Any) -> Iterator[tuple[Any, str]]:
    handler = type("OneHandler", (Handler,), {"seen": [], **dials})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield handler, f"http{'s' if tls else ''}://localhost:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def running(base_url: str, **fields: Any) -> RunningServer:
    given: dict[str, Any] = {
        "served_name": "m",
        "api_key": "key",
        "pid": 0,
        "ready_after_s": 1.0,
        "argv": (),
        "effective_args": {},
        "learnt": {},
        "is_alive": lambda: True,
        "log_path": Path("server.log"),
    }
    return RunningServer(base_url, **{**given, **fields})


@pytest.mark.parametrize("path", ["", "/some/where"])
def test_an_answer_at_any_address(path: str) -> None:
    with listening() as (handler, url):
        assert vital.answers(running(url + path))
    (asked_path, key, body), *_ = handler.seen
    assert asked_path == f"{path}/v1/completions"
    assert (key, body["model"], body["max_tokens"]) == ("Bearer key", "m", 1)


def test_no_key_is_sent_where_there_is_none() -> None:
    with listening() as (handler, url):
        assert vital.answers(running(url, api_key=""))
    assert handler.seen[0][1] is None


def test_an_answer_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = tmp_path / "both.pem"
    _make_certificate(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with listening(tls=context) as (_, url):
        assert not vital.answers(running(url)), "the certificate is not trusted"
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        assert vital.answers(running(url))


def _make_certificate(path: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(path)]
    try:
        done = subprocess.run(
            [*command, "-out", f"{path}.crt"], capture_output=True, check=False, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed, and makes the test's certificate")
    assert done.returncode == 0, done.stderr.decode()
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())


def test_an_error_is_no_answer() -> None:
    with listening(status=500) as (_, url):
        assert not vital.answers(running(url))


def test_an_answer_without_a_completion_is_none() -> None:
    with listening(answer=b"{}") as (_, url):
        assert not vital.answers(running(url))


def test_an_answer_that_trickles_in_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Trickle(Handler):
        seen: list[tuple[str, str | None, Any]] = []  # noqa: RUF012 - of one test

        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.1)

    monkeypatch.setattr(vital, "ANSWER_TIMEOUT_S", 0.5)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Trickle)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    begun = time.monotonic()
    assert not vital.answers(running(f"http://127.0.0.1:{server.server_address[1]}"))
    assert time.monotonic() - begun < 5
    server.shutdown()


def test_a_server_that_is_not_ours_is_not_waited_for() -> None:
    """Nobody knows whether its process ends, so there is nothing to wait for."""
    begun = time.monotonic()
    assert not vital.answers(running("http://127.0.0.1:1"))
    assert time.monotonic() - begun < 1


def test_a_dying_server_is_given_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vital, "DYING_S", 5.0)
    ends = time.monotonic() + 0.4
    server = running("http://127.0.0.1:1", pid=1, is_alive=lambda: time.monotonic() < ends)
    assert not vital.answers(server)
    assert ends <= time.monotonic() < ends + 1


@pytest.mark.parametrize("ended", [None, "the engine's process ended"])
def test_a_direct_engine_is_asked_for_a_batch_of_one(ended: str | None) -> None:
    jobs: list[BatchJob] = []

    def measure(job: BatchJob) -> BatchResult:
        jobs.append(job)
        return BatchResult((BatchRequest(3, 1),), 0.1, ended_early=ended)

    assert vital.answers(running("", measure=measure)) is (ended is None)
    assert [(len(job.prompts), list(job.output_tokens)) for job in jobs] == [(1, [1])]


def test_a_dead_process_is_not_asked() -> None:
    with listening() as (handler, url):
        assert not vital.answers(running(url, is_alive=lambda: False))
    assert handler.seen == []
