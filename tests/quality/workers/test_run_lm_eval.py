"""The worker's own part: what it makes of errors, and what it tells. lm-eval itself is not here."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sweeper.toolchain.environment import _digest


class Heard:
    """A worker that only notes what it is told."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def phase(self, name: str) -> None:
        self.said.append(name)

    def progress(self, done: int, of: int, what: str) -> None:
        self.said.append((done, of, what))


@pytest.fixture
def ears(script: ModuleType) -> Iterator[Any]:
    made = script.Ears(Heard())
    yield made
    logging.getLogger("lm_eval").removeHandler(made)


def said(ears: Any) -> list[Any]:
    heard: list[Any] = ears._worker.said
    return heard


def test_progress_is_told_now_and_then_and_at_the_end(script: ModuleType, ears: Any) -> None:
    ears.loads("gsm8k")
    ears.begin([[1, 2], [1, 2, 3]] * 50, 1)
    for _ in range(100):
        ears.answered()
    told = [line for line in said(ears) if isinstance(line, tuple)]
    assert said(ears)[:2] == ["load", "ask"]
    assert told[-1] == (100, 100, "requests of gsm8k") and len(told) < 10


def test_the_longest_request_is_known(script: ModuleType, ears: Any) -> None:
    ears.begin([[0] * 30], script._answer_tokens(None))
    ears.begin([[0] * 20], script._answer_tokens({"max_gen_toks": 64, "until": []}))
    ears.begin([[0] * 25], script._answer_tokens({"max_tokens": 4}))
    assert ears.longest_tokens == 84
    assert script._answer_tokens({}) == script.DEFAULT_ANSWER_TOKENS


def test_a_server_that_refuses_is_quoted(script: ModuleType, ears: Any) -> None:
    ears.loads("t")
    ears.begin([[1]], 1)
    logging.getLogger("lm_eval.models.api_models").warning(
        "API request failed! Status code: 400, Response text: too long. Retrying..."
    )
    found = script._explained(RuntimeError("400"), "t", ears)
    assert found.kind == "server"
    assert found.message.endswith("Status code: 400, Response text: too long.")
    ears.refusal = ""
    assert "TimeoutError" in script._explained(TimeoutError(), "t", ears).message


def test_no_network_is_told_from_a_broken_task(script: ModuleType, ears: Any) -> None:
    ears.loads("t")
    outer = ValueError("data set not found")
    outer.__cause__ = type("OfflineModeIsEnabled", (OSError,), {})("offline")
    assert script._explained(outer, "t", ears).kind == "network"
    assert script._explained(ConnectionError("no route"), "t", ears).kind == "network"
    broken = script._explained(KeyError("question"), "t", ears)
    assert broken.kind == "unsupported" and "task t cannot be run" in broken.message


def test_a_chain_of_causes_that_bites_its_tail_ends(script: ModuleType, ears: Any) -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert script._explained(one, "t", ears).kind == "unsupported"


def test_an_unknown_task_gets_near_names(script: ModuleType) -> None:
    script._check_known("gsm8k", ["gsm8k"])
    with pytest.raises(Exception, match="no task is called gsm9k; did you mean gsm8k") as caught:
        script._check_known("gsm9k", ["gsm8k", "mmlu"])
    assert caught.value.kind == "unknown_task"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("bos", "ids", "expected"), [(1, [1, 40], True), (1, [40], False), (None, [40], False)]
)
def test_a_text_begins_as_the_tokenizer_has_it(
    script: ModuleType, bos: int | None, ids: list[int], expected: bool
) -> None:
    class Tokenizer:
        bos_token_id = bos

        def __call__(self, text: str) -> SimpleNamespace:
            return SimpleNamespace(input_ids=ids)

    assert script._begins_with_bos(Tokenizer()) is expected


class Models(BaseHTTPRequestHandler):
    """`/v1/models` behind a key."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != "Bearer right":
            self.send_error(401)
            return
        body = json.dumps({"data": [{"id": "a", "max_model_len": 512}, {"id": "b"}]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def test_the_servers_own_limit_is_asked(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nothing on this machine goes there
    server = HTTPServer(("127.0.0.1", 0), Models)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    base_url = f"http://127.0.0.1:{server.server_port}"
    try:
        monkeypatch.setenv("OPENAI_API_KEY", "right")
        assert script._max_length(base_url, "a") == 512
        assert script._max_length(base_url, "b") == script.DEFAULT_MAX_LENGTH
        monkeypatch.setenv("OPENAI_API_KEY", "wrong")
        with pytest.raises(Exception, match="HTTP 401") as caught:
            script._max_length(base_url, "a")
        assert caught.value.kind == "server"  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


def test_its_environment_is_described(script: ModuleType) -> None:
    path = Path(script.__file__ or "")
    text = path.read_text(encoding="utf-8")
    assert "lm-eval[api]==" in text and "transformers==" in text
    assert "torch" not in text.split("# ///")[1]
    assert len(_digest(path)) == 64
