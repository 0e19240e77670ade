"""An OpenAI-compatible stub with dialled speed, memory and faults, run as a process of its own.

    python -m sweeper.engine.mock.server --port 8000 --settings settings.json

The settings are a JSON object: `served_name`, `parameters` (the deployment) and `options`
(see `sweeper.engine.mock.options`). The API key comes through the environment, as for vLLM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweeper.engine.httpd import Request, Response, as_json, route, serve
from sweeper.engine.mock import telling
from sweeper.engine.mock.completions import Completions, bad_request
from sweeper.engine.mock.fault import read_fault
from sweeper.engine.mock.faults import Faults
from sweeper.engine.mock.language import language_of
from sweeper.engine.mock.machine import Machine, quantization_bits
from sweeper.engine.mock.options import mock_options
from sweeper.engine.mock.scheduler import Scheduler

API_KEY_VARIABLE = "VLLM_API_KEY"


class MockServer:
    """The endpoints of one deployment.

    Args:
        machine: what it is.
        told: what it says it is.
        faults: what goes wrong.
        served_name: of the model.
        api_key: asked for below ``/v1``; empty asks for none.
    """

    def __init__(
        self, machine: Machine, told: Machine, faults: Faults, served_name: str, api_key: str
    ) -> None:
        language = language_of(
            machine.options.vocab_size,
            quantization_bits(machine.quantization),
            machine.quantization,
            machine.kv_cache_dtype,
            machine.options.quality_loss,
        )
        self.scheduler = Scheduler(machine, language, faults.writing)
        self.faults = faults
        self.told = told
        self.completions = Completions(self.scheduler, faults, served_name)
        self.served_name = served_name
        self._api_key = api_key

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        if request.path == "/health":
            return await self.faults.at_health() or Response()
        return await route(
            request, api_key=self._api_key, get=self._get, post=self._post, refuse=bad_request
        )

    def _get(self, path: str) -> Response:
        machine = self.scheduler.machine
        if path == "/v1/models":
            model = {
                "id": self.faults.told_name(self.served_name),
                "object": "model",
                "owned_by": "mock",
                "max_model_len": machine.max_model_len,
            }
            return as_json({"object": "list", "data": [model]})
        if path == "/metrics":
            text = telling.metrics(self.scheduler, self.served_name)
            return Response(body=text.encode(), content_type="text/plain; version=0.0.4")
        if path == "/server_info":
            return as_json(telling.server_info(self.told))
        return as_json({"detail": "Not Found"}, 404)

    async def _post(self, path: str, body: Any) -> Response:
        if path == "/v1/completions":
            return await self.completions.answer(body)
        if path == "/tokenize":
            if (struck := await self.faults.at_tokenize()) is not None:
                return struck
            tokens = self.completions.language.encode(str(body.get("prompt", "")))
            limit = self.scheduler.machine.max_model_len
            return as_json({"tokens": tokens, "count": len(tokens), "max_model_len": limit})
        return as_json({"detail": "Not Found"}, 404)


async def _run(server: MockServer, host: str, port: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked_to_stop() -> None:
        server.faults.at_stop()
        ended.set()

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGTERM, asked_to_stop)
    bound = _shared_socket(host, port) if server.faults.shares_port else None
    listener = await serve(server.handle, host, port, bound=bound)
    stepping = asyncio.create_task(server.scheduler.run())
    print(f"Application startup complete on port {port}.", flush=True)
    await ended.wait()
    stepping.cancel()
    listener.close()


def _note_start(path: Path, served_name: str) -> None:
    """One write, so that lines of several servers do not mix."""
    with path.open("ab", buffering=0) as file:
        file.write(f"{served_name}\n".encode())


def _shared_socket(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((host, port))
    return bound


def _start(settings: Mapping[str, Any], host: str, port: int) -> int:
    parameters = settings.get("parameters", {})
    options = mock_options(settings.get("options", {}))
    served_name = str(settings.get("served_name", "mock"))
    if options.starts:
        _note_start(Path(options.starts), served_name)
    faults = Faults.of([read_fault(fault) for fault in options.faults], parameters, served_name)
    machine = Machine.of(faults.followed(parameters), options, faults.slow_factor)
    told = Machine.of(faults.told(parameters), options)
    faults.at_start(served_name, options.device_memory)
    time.sleep(machine.start_s)
    refusal = machine.refusal()
    if refusal is not None:
        print("\n".join(telling.failure_lines(refusal)), flush=True)
        return 1
    print("\n".join(telling.start_lines(machine, parameters)), flush=True)
    api_key = os.environ.get(API_KEY_VARIABLE, "")
    server = MockServer(machine, told, faults, served_name, api_key)
    try:
        asyncio.run(_run(server, host, port))
    except OSError as problem:
        print(f"OSError: {problem}", flush=True)
        return 1
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run the server until TERM. Returns the process's exit code."""
    parser = argparse.ArgumentParser(description="OpenAI-compatible stub of an inference engine")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--settings", type=Path, help="JSON file with the deployment and the dials")
    args = parser.parse_args(argv)
    settings = json.loads(args.settings.read_text()) if args.settings else {}
    return _start(settings, args.host, args.port)


if __name__ == "__main__":
    sys.exit(main())
