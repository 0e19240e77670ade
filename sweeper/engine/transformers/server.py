"""transformers behind an OpenAI-compatible streaming interface, run as a process of its own.

    python -m sweeper.engine.transformers.server --port 8000 --settings settings.json

The settings are a JSON object as `sweeper.engine.transformers.engine` writes it: `model`,
`revision`, `trust_remote_code`, `served_name`, `flags` (the deployment) and `options`. The API key
comes through the environment. One thread runs the model; this one only reads and writes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweeper.engine.httpd import Request, Response, as_json, route, serve
from sweeper.engine.transformers.completions import Completions, refused
from sweeper.engine.transformers.deployment import Deployment, RefusedError, read_deployment
from sweeper.engine.transformers.jobs import Board
from sweeper.engine.transformers.loading import LoadedModel, effective, load
from sweeper.engine.transformers.metrics import exposition
from sweeper.engine.transformers.telling import API_KEY_VARIABLE, INFO_PATH, tell
from sweeper.engine.transformers.worker import GenerateWorker, Worker

EXIT_REFUSED = 2


class TransformersServer:
    """The endpoints of one deployment."""

    def __init__(
        self,
        loaded: LoadedModel,
        deployment: Deployment,
        worker: Worker,
        board: Board,
        *,
        served_name: str,
        api_key: str,
    ) -> None:
        self._loaded = loaded
        self._deployment = deployment
        self._worker = worker
        self._board = board
        self._served_name = served_name
        self._api_key = api_key
        self._completions = Completions(loaded, worker, board, served_name)

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        return await route(
            request, api_key=self._api_key, get=self._get, post=self._post, refuse=refused
        )

    def _get(self, path: str) -> Response:
        if path == "/health":
            return Response()
        if path == "/v1/models":
            model = {
                "id": self._served_name,
                "object": "model",
                "owned_by": "sweeper",
                "max_model_len": self._loaded.max_model_len,
            }
            return as_json({"object": "list", "data": [model]})
        if path == "/metrics":
            text = exposition(self._board, self._served_name)
            return Response(body=text.encode(), content_type="text/plain; version=0.0.4")
        if path == INFO_PATH:
            return as_json(
                {**effective(self._loaded, self._deployment), **self._worker.effective()}
            )
        return refused("there is no such path", 404)

    async def _post(self, path: str, body: Any) -> Response:
        if path == "/v1/completions":
            return await self._completions.answer(body)
        if path == "/tokenize":
            return self._tokenize(body)
        return refused("there is no such path", 404)

    def _tokenize(self, body: Any) -> Response:
        prompt = body.get("prompt") if isinstance(body, Mapping) else None
        if not isinstance(prompt, str):
            return refused("give the text to tokenize as prompt")
        special = body.get("add_special_tokens") is not False
        read = self._loaded.tokenizer(prompt, add_special_tokens=special)["input_ids"]
        tokens = [int(token) for token in read]
        limit = self._loaded.max_model_len
        return as_json({"tokens": tokens, "count": len(tokens), "max_model_len": limit})


def worker_of(loaded: LoadedModel, deployment: Deployment, board: Board) -> Worker:
    """What runs the model. Raises RefusedError if it cannot."""
    if deployment.batching == "continuous":
        from sweeper.engine.transformers.continuous import ContinuousWorker

        return ContinuousWorker(loaded, deployment, board)
    return GenerateWorker(loaded, deployment, board)


async def _run(
    loaded: LoadedModel, deployment: Deployment, served_name: str, bound: socket.socket
) -> int:
    board = Board()
    worker = worker_of(loaded, deployment, board)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    worker.start()
    server = TransformersServer(
        loaded,
        deployment,
        worker,
        board,
        served_name=served_name,
        api_key=os.environ.get(API_KEY_VARIABLE, ""),
    )
    await serve(server.handle, "", 0, bound=bound)
    print(f"listening on port {bound.getsockname()[1]}", flush=True)
    waits = [asyncio.ensure_future(event.wait()) for event in (ended, board.fatal)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    if board.fatal.is_set():
        await asyncio.sleep(0.2)  # clients are told why their request failed
        return 1
    return 0


def _start(settings: Mapping[str, Any], host: str, port: int) -> int:
    deployment = read_deployment(settings["flags"])
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as bound:
        # Before the model is read, which takes minutes, and a taken port then costs none.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        loaded = load(settings, deployment)
        facts = {
            "model_memory_gib": round(loaded.memory_gib, 3),
            "model_load_s": round(loaded.load_s, 2),
            **(
                {"random_weights": "yes: the output means nothing"} if loaded.random_weights else {}
            ),
        }
        print(tell("loaded", **facts), flush=True)
        return asyncio.run(_run(loaded, deployment, str(settings["served_name"]), bound))


def main(argv: list[str] | None = None) -> int:
    """Run the server until TERM. Returns the process's exit code."""
    parser = argparse.ArgumentParser(description="OpenAI-compatible server around transformers")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--settings", type=Path, required=True, help="JSON file of the launch")
    args = parser.parse_args(argv)
    try:
        return _start(json.loads(args.settings.read_text()), args.host, args.port)
    except RefusedError as refusal:
        print(f"Refused: {refusal}", flush=True)
        return EXIT_REFUSED


if __name__ == "__main__":
    try:
        code = main()
    except Exception:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # The model's thread may be inside a kernel: nothing is gained by waiting for it.
    os._exit(code)
