"""The process that holds vLLM's `LLM`. Run by the engine's own interpreter, never imported.

It stands alone (standard library and vLLM only), because that interpreter need not have this
package. One JSON object a line goes either way over the socket whose number it is given; its
output is the launch's log, which vLLM writes to as it likes. It ends when the other side closes
the socket, so that it cannot outlive a tuner that was killed.

    → {"op": "start", "secrets": {...}}                      once; flags are on the command line
    ← {"event": "loaded"}                                    the engine is up, nothing written yet
    ← {"event": "ready", "effective": {...}}                 a completion was written
    → {"op": "tokenize", "id": 1, "texts": [...]}            ← {"id": 1, "tokens": [[...], ...]}
    → {"op": "measure", "id": 2, "prompts": [...], ...}      ← {"id": 2, "requests": [...], ...}
                                                             ← {"id": 2, "error": "..."}
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

Message = dict[str, Any]
PROBE_TOKENS = 4
# Sections of vLLM's configuration that `sweeper.engine.vllm.effective` reads.
SECTIONS = (
    "model_config",
    "cache_config",
    "parallel_config",
    "scheduler_config",
    "speculative_config",
)


def main() -> None:
    """Serve one client until it closes the socket."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--llm", required=True, help="arguments of LLM, as JSON")
    given = parser.parse_args()
    os.set_inheritable(given.fd, False)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with socket.socket(fileno=given.fd) as channel, channel.makefile("r") as lines:
        say = _sayer(channel)
        first = json.loads(lines.readline() or "{}")
        vllm = import_module("vllm")
        llm = vllm.LLM(**{**json.loads(given.llm), **first.get("secrets", {})})
        with suppress(SystemExit):  # asked to end: as good as a closed socket
            try:
                _serve(vllm, llm, lines, say)
            finally:
                _end(llm)
    # The interpreter would take its time to tear down torch, and nothing is left to be saved.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _serve(vllm: Any, llm: Any, lines: Iterable[str], say: Callable[[Message], None]) -> None:
    say({"event": "loaded"})
    _generate(vllm, llm, {"prompts": ["The"], "output_tokens": [PROBE_TOKENS]})
    say({"event": "ready", "effective": _effective(llm)})
    for line in lines:
        say(_answer(vllm, llm, json.loads(line)))


def _end(llm: Any) -> None:
    """End vLLM's processes at once. Left alone they wait for each other for many seconds."""
    core = getattr(getattr(llm, "llm_engine", None), "engine_core", None)
    end = getattr(core, "shutdown", None)
    if end is None:
        return
    try:
        end(timeout=0)
    except TypeError:  # older versions do not ask how long
        end()


def _sayer(channel: socket.socket) -> Callable[[Message], None]:
    def say(message: Message) -> None:
        channel.sendall((json.dumps(message) + "\n").encode())

    return say


def _answer(vllm: Any, llm: Any, asked: Message) -> Message:
    """One answer. What the engine refuses is told; a dead engine ends the process."""
    try:
        done = _measure(vllm, llm, asked) if asked["op"] == "measure" else _tokenize(llm, asked)
        return {"id": asked["id"], **done}
    except Exception as problem:
        traceback.print_exc()
        if type(problem).__name__ == "EngineDeadError":
            raise
        words = str(problem).splitlines() or [""]
        return {"id": asked["id"], "error": type(problem).__name__ + ": " + words[0]}


def _tokenize(llm: Any, asked: Message) -> Message:
    encode = llm.get_tokenizer().encode
    return {"tokens": [list(encode(text, add_special_tokens=False)) for text in asked["texts"]]}


def _measure(vllm: Any, llm: Any, asked: Message) -> Message:
    before, cpu_before_s, begun_s = _counters(llm), time.process_time(), time.monotonic()
    outputs = _generate(vllm, llm, asked)
    duration_s = time.monotonic() - begun_s
    after = _counters(llm)
    return {
        "requests": [_request(output, begun_s, duration_s) for output in outputs],
        "duration_s": duration_s,
        "engine_cpu_s": time.process_time() - cpu_before_s,
        "counters": {name: after[name] - before.get(name, 0.0) for name in after},
    }


def _generate(vllm: Any, llm: Any, asked: Message) -> Any:
    """All prompts at once. Ids are given as such; text is left to the engine's tokenizer."""
    prompts = [
        prompt if isinstance(prompt, str) else {"prompt_token_ids": prompt}
        for prompt in asked["prompts"]
    ]
    sampling = {"temperature": 0.0, "ignore_eos": True, **asked.get("sampling", {})}
    parameters = [
        vllm.SamplingParams(
            max_tokens=count, min_tokens=count if sampling["ignore_eos"] else 0, **sampling
        )
        for count in asked["output_tokens"]
    ]
    return llm.generate(prompts, parameters, use_tqdm=False)


def _request(output: Any, begun_s: float, duration_s: float) -> Message:
    completion = output.outputs[0]
    first_s, last_s = _times(getattr(output, "metrics", None), begun_s, duration_s)
    return {
        "prompt_tokens": len(output.prompt_token_ids or ()),
        "output_tokens": len(completion.token_ids),
        "finish_reason": completion.finish_reason,
        "first_token_s": first_s,
        "finished_s": last_s,
    }


def _times(
    metrics: Any, begun_s: float, duration_s: float
) -> tuple[float, float] | tuple[None, None]:
    """First and last token since the start of the batch, or (None, None).

    They are read off the engine core's monotonic clock, which is this process's own on one machine.
    On another machine it is not, and then they do not lie within the batch.
    """
    first = getattr(metrics, "first_token_ts", None)
    last = getattr(metrics, "last_token_ts", None)
    if not first or not last:
        return None, None
    first_s, last_s = first - begun_s, last - begun_s
    if not 0 < first_s <= last_s <= duration_s:
        return None, None
    return first_s, last_s


def _counters(llm: Any) -> dict[str, float]:
    """The engine's counters by their names at /metrics, summed over labels; empty if untold."""
    read = getattr(llm, "get_metrics", None)
    totals: dict[str, float] = {}
    if read is None:
        return totals
    try:
        metrics = read()
    except Exception as problem:  # log statistics are off, in words that change by version
        print(f"no counters: {type(problem).__name__}: {problem}")
        return totals
    for metric in metrics:
        if type(metric).__name__ == "Counter":
            name = metric.name + "_total"
            totals[name] = totals.get(name, 0.0) + float(metric.value)
    return totals


def _effective(llm: Any) -> Message:
    """Plain values of the configuration, in the form of vLLM's /server_info."""
    config = getattr(getattr(llm, "llm_engine", None), "vllm_config", None)
    told = {}
    for section in SECTIONS:
        values = getattr(config, section, None)
        if values is not None:
            told[section] = {name: _plain(value) for name, value in vars(values).items()}
    return {"vllm_config": told}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


if __name__ == "__main__":
    main()
