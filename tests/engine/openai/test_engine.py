"""A server that somebody else started: found, spoken to, explained, and left alone."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.openai.engine import OpenAiEngine
from sweeper.engine.protocol import LaunchFailure, LaunchRequest
from sweeper.errors import ConfigError, EngineError
from sweeper.trial import vital
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.engine.conftest import Bench

KEY = "sk-very-secret-0123456789"
MODELS = {"data": [{"id": "llama", "owned_by": "vllm", "root": "org/llama", "max_model_len": 64}]}
COMPLETION = {"choices": [{"text": "x"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
GOOD: dict[str, Any] = {
    "/v1/models": MODELS,
    "/v1/completions": COMPLETION,
    "/version": {"version": "9.9"},
}


class Stub:
    """Answers by path: a JSON object, (status, text) or (status, text, headers)."""

    def __init__(self, **changes: Any) -> None:
        self.answers = {**GOOD, **{f"/{k.replace('_', '/')}": v for k, v in changes.items()}}
        self.seen: list[tuple[str, str | None]] = []
        self.wait_s = 0.0
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stub.seen.append((self.path, self.headers.get("Authorization")))
                if self.path.endswith("/completions"):
                    time.sleep(stub.wait_s)
                status, text, headers = _answer(stub.answers.get(self.path, (404, "no")))
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(text.encode())
                except OSError:
                    pass  # the client gave up waiting

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def _answer(said: Any) -> tuple[int, str, dict[str, str]]:
    if isinstance(said, tuple):
        status, text, *rest = said
        return status, text, rest[0] if rest else {}
    return 200, json.dumps(said), {"Content-Type": "application/json"}


@contextmanager
def stub(**changes: Any) -> Iterator[Stub]:
    served = Stub(**changes)
    threading.Thread(target=served.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield served
    finally:
        served.server.shutdown()
        served.server.server_close()


def engine(tmp_path: Path, url: str, **fields: Any) -> OpenAiEngine:
    cfg = EngineConfig(name="openai", base_url=url, api_key_env="THEIR_KEY", **fields)
    return OpenAiEngine(cfg, cache_dir=tmp_path)


def request(tmp_path: Path, timeout_s: float = 5.0) -> LaunchRequest:
    return LaunchRequest("llama", {}, tmp_path / "run", "trial-1", timeout_s, "token")


def failure(tmp_path: Path, url: str, timeout_s: float = 5.0, **fields: Any) -> Diagnosis:
    with (
        pytest.raises(LaunchFailure) as caught,
        engine(tmp_path, url, **fields).serve(request(tmp_path, timeout_s)),
    ):
        pass
    diagnosis = caught.value.diagnosis
    assert diagnosis.verdict is Verdict.INFRA
    assert diagnosis.remedy
    return diagnosis


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/"])
def test_a_good_server_is_driven_under_its_own_name(tmp_path: Path, tail: str) -> None:
    with stub() as there, engine(tmp_path, there.url + tail).serve(request(tmp_path)) as server:
        assert (server.base_url, server.served_name) == (there.url, "llama")
        assert (server.pid, server.argv, server.exit_code()) == (0, (), None)
        assert server.effective_args == {"max_model_len": 64}
        assert server.is_alive()
        assert ("/v1/completions", None) in there.seen
        assert "not started here" in server.log_path.read_text()
        assert vital.answers(server)


def test_an_address_with_a_path_of_its_own(tmp_path: Path) -> None:
    with stub(api_v1_models=MODELS, api_v1_completions=COMPLETION) as there:
        del there.answers["/v1/models"], there.answers["/v1/completions"]
        with engine(tmp_path, f"{there.url}/api/v1").serve(request(tmp_path)) as server:
            assert server.base_url == f"{there.url}/api"


def test_it_is_never_stopped(tmp_path: Path, bench: Bench) -> None:
    """A real server process, driven from outside: alive before, meanwhile and after."""
    with bench.engine().serve(bench.request()) as ours:
        (key := pytest.MonkeyPatch()).setenv("THEIR_KEY", ours.api_key)
        there = engine(tmp_path, ours.base_url)
        key.undo()
        facts = there.facts()
        assert facts.details["served_model"] == "trial-7"
        with there.serve(request(tmp_path)) as server:
            assert vital.answers(server)
            assert "num_kv_blocks" in server.effective_args
        assert vital.answers(ours)


def test_facts_are_what_the_server_tells_and_stay_the_same(tmp_path: Path) -> None:
    with stub() as there:
        facts, again = engine(tmp_path, there.url).facts(), engine(tmp_path, there.url).facts()
    assert facts == again
    assert (facts.name, facts.version, facts.distribution) == ("openai", "9.9", "vllm")
    assert facts.device == "remote"
    assert facts.details == {
        "served_model": "llama",
        "model_root": "org/llama",
        "max_model_len": "64",
    }


def test_a_server_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    with stub(v1_models={"data": [{"id": "m"}]}, version=(200, "no json")) as there:
        facts = engine(tmp_path, there.url).facts()
    assert (facts.version, facts.distribution) == ("unknown", "unknown")


def test_without_a_list_of_models_the_name_given_counts(tmp_path: Path) -> None:
    with stub(v1_models=(404, "no")) as there:
        with engine(tmp_path, there.url, served_model="m").serve(request(tmp_path)) as server:
            assert server.served_name == "m"
        assert "/v1/models" in failure(tmp_path, there.url).cause


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        found = failure(tmp_path, f"http://127.0.0.1:{port}")
        with pytest.raises(EngineError, match="refused"):
            engine(tmp_path, f"http://127.0.0.1:{port}").facts()
    assert f"127.0.0.1:{port} refused" in found.cause
    assert "engine.base_url" in found.remedy


def test_a_missing_key_names_the_variable(tmp_path: Path) -> None:
    with stub(v1_models=(401, "who are you")) as there:
        found = failure(tmp_path, there.url)
    assert "THEIR_KEY is not set" in found.cause
    assert "engine.api_key_env" in found.remedy


def test_the_key_is_sent_and_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", f" {KEY}\n")
    with stub() as there, engine(tmp_path, there.url).serve(request(tmp_path)) as server:
        assert ("/v1/completions", f"Bearer {KEY}") in there.seen
        assert server.api_key == KEY
        assert KEY not in repr(server)
        facts = engine(tmp_path, there.url).facts()
    assert KEY not in repr(facts)
    assert all(KEY not in file.read_text() for file in (tmp_path / "run").iterdir())


@pytest.mark.parametrize("status", [401, 400, 500])
def test_a_server_that_repeats_the_key_does_not_make_it_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("THEIR_KEY", KEY)
    echo = (status, json.dumps({"error": {"message": f"Bad key: {KEY}"}}))
    with stub(v1_completions=echo) as there:
        found = failure(tmp_path, there.url)
    assert KEY not in repr(found)
    assert f"HTTP {status}" in found.cause


def test_a_key_that_cannot_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", "two words")
    with pytest.raises(ConfigError, match="THEIR_KEY"):
        engine(tmp_path, "http://127.0.0.1:1")


def test_another_model_is_served(tmp_path: Path) -> None:
    with stub() as there:
        found = failure(tmp_path, there.url, served_model="qwen")
    assert "does not serve qwen; it serves llama" in found.cause
    assert "engine.served_model" in found.remedy


def test_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    several = {"data": [{"id": "llama"}, {"id": "qwen"}]}
    with stub(v1_models=several) as there:
        assert "llama, qwen" in failure(tmp_path, there.url).cause
        with engine(tmp_path, there.url, served_model="qwen").serve(request(tmp_path)) as server:
            assert server.served_name == "qwen"


PAGE = (200, "<!doctype html><html>Login</html>", {"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"v1_models": PAGE}, "web page"),
        ({"v1_models": (200, "hello")}, "no JSON"),
        ({"v1_models": {"data": []}}, "lists no model"),
        ({"v1_models": {"data": "x"}}, "lists no model"),
        ({"v1_models": [1]}, "lists no model"),
        ({"v1_models": (307, "", {"Location": "https://else.where/v1?t=1"})}, "//else.where/v1"),
        ({"v1_models": (502, "<html>Bad gateway</html>")}, "HTTP 502"),
        ({"v1_completions": (404, '{"detail": "Not Found"}')}, "/v1/completions"),
        ({"v1_completions": (400, '{"error": {"message": "too\\nlong"}}')}, "too long"),
        ({"v1_completions": (429, "slow down")}, "HTTP 429: slow down"),
        ({"v1_completions": {"choices": []}}, "without a choice"),
        ({"v1_completions": [1]}, "without a choice"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with stub(**changes) as there:
        found = failure(tmp_path, there.url)
    assert said in found.cause
    assert "t=1" not in found.cause


def test_a_web_page_is_not_quoted_as_a_message(tmp_path: Path) -> None:
    with stub(v1_models=(503, "<html>" + "x" * 5000)) as there:
        found = failure(tmp_path, there.url)
    assert "<html>" not in found.cause
    assert len(found.evidence) <= 300


def test_no_answer_in_time(tmp_path: Path) -> None:
    with stub() as there:
        there.wait_s = 1.5
        found = failure(tmp_path, there.url, timeout_s=0.3)
    assert "did not answer" in found.cause
    assert "start_timeout_s" in found.remedy


def test_https_is_spoken_to_servers_that_have_none(tmp_path: Path) -> None:
    with stub() as there:
        found = failure(tmp_path, there.url.replace("http:", "https:"))
    assert "TLS" in found.cause
    assert "http://" in found.remedy


def test_a_server_that_stopped_answering_is_not_called_a_crash_of_ours(tmp_path: Path) -> None:
    found = engine(tmp_path, "http://127.0.0.1:1").diagnose("", Phase.LOAD, None)
    assert "answers no more" in found.cause
    assert found.phase is Phase.LOAD


@pytest.mark.parametrize("url", ["http://user:secret@host", "ftp://host", "host:8000", None])
def test_no_address(tmp_path: Path, url: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAiEngine(EngineConfig(name="openai", base_url=url), cache_dir=tmp_path)
    assert "secret" not in str(caught.value)
