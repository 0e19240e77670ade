# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["aisimulate==0.13.0.dev202610270000000085"]
# ///
"""Answers a file of questions with AISimulate, one line each; goes on where it was stopped.

uv run --script benchmarks/efficiency/predict_worker.py ASKS ANSWERS [--pause-while FILE]
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import yaml

BLOCK_TOKENS = 64
GIB = 1024**3
NO_ROOM = re.compile(r"non-KV memory \((\d+) bytes\).*capacity=(\d+) bytes")
_parsed: dict[tuple[str, str], Any] = {}
_load = yaml.load


def _load_once(stream: Any, Loader: Any) -> Any:  # noqa: N803 - PyYAML's own name
    """The simulator reads the same files for every prediction: two thirds of its time."""
    text = stream if isinstance(stream, (str, bytes)) else stream.read()
    key = (str(text), Loader.__name__)
    if key not in _parsed:
        _parsed[key] = _load(text, Loader)
    return copy.deepcopy(_parsed[key])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("asks", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--pause-while", type=Path, default=None)
    args = parser.parse_args()
    done = _answered(args.answers)
    yaml.load = _load_once
    predict = _predictor()
    started, answered = time.monotonic(), 0
    with args.asks.open(encoding="utf-8") as asks, args.answers.open("a") as answers:
        for line in asks:
            ask = json.loads(line)
            shares = ask.pop("shares")
            if json.dumps(ask, sort_keys=True, separators=(",", ":")) in done:
                continue
            while args.pause_while is not None and args.pause_while.exists():
                time.sleep(1)
            entry = {"ask": ask, "shares": _by_share(predict, ask, shares)}
            answers.write(json.dumps(entry, separators=(",", ":")) + "\n")
            answers.flush()
            answered += 1
            if answered % 500 == 0:
                each_ms = (time.monotonic() - started) / answered * 1000
                print(f"{answered} answered, {each_ms:.0f} ms each", file=sys.stderr, flush=True)
    return 0


def _answered(path: Path) -> set[str]:
    """Questions with a whole line in the file; a torn last line is cut off."""
    if not path.exists():
        return set()
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return {
        json.dumps(json.loads(line)["ask"], sort_keys=True, separators=(",", ":"))
        for line in whole.splitlines()
    }


def _by_share(predict: Any, ask: dict[str, Any], shares: list[float]) -> dict[str, Any]:
    """One answer a memory share; once the cache holds all sequences, more memory is no use."""
    said: dict[str, Any] = {}
    last: dict[str, Any] | None = None
    for share in shares:
        if last is None or not last.get("ample"):
            last = predict(ask, share)
        said[str(share)] = {key: value for key, value in last.items() if key != "ample"}
    return said


def _predictor() -> Any:
    from aisimulate.config import CorePredictionConfig  # noqa: PLC0415
    from aisimulate.predict import PredictionExecutionError, run_prediction  # noqa: PLC0415
    from aisimulate.runner import EngineReplayRunnerFactory  # noqa: PLC0415
    from aisimulate.sweeper.replay import ReplayOutputRequirements  # noqa: PLC0415

    factory = EngineReplayRunnerFactory()
    wanted = ReplayOutputRequirements(include_raw_report=True, capture_memory_diagnostics=True)

    def predict(ask: dict[str, Any], share: float) -> dict[str, Any]:
        config = CorePredictionConfig.model_validate(_config(ask, share))
        try:
            result = run_prediction(
                config, stack="engine", runner_factory=factory, output_requirements=wanted
            )
        except PredictionExecutionError as error:
            return _refused(str(error), share)
        return _answer(ask, result)

    return predict


def _config(ask: dict[str, Any], share: float) -> dict[str, Any]:
    rates = ask["acceptance_rates"]
    speculation = {
        "kind": "ngram",
        "num_speculative_tokens": len(rates),
        "acceptance_rates": rates,
        "seed": ask["seed"],
    }
    timing = {"gemm_quant_mode": ask["gemm"], "kvcache_quant_mode": ask["kv_cache"]}
    worker = {
        "parallelism": {
            "replicas": ask.get("replicas", 1),
            "tensor": ask["tensor"],
            "pipeline": ask.get("pipeline", 1),
        },
        "scheduler": {
            "max_batched_tokens": ask["max_batched_tokens"],
            "max_sequences": ask["max_sequences"],
        },
        "kv_cache": {"capacity": {"memory_fraction": share}},
        "timing": {key: value for key, value in timing.items() if value is not None},
    }
    return {
        "traffic": {
            "source": {
                "type": "synthetic",
                "input_tokens": ask["input_tokens"],
                "output_tokens": ask["output_tokens"],
            },
            "load": {"type": "concurrency", "concurrency": ask["concurrency"]},
            "stop": {"requests": ask["requests"]},
        },
        "engine": {
            "model": ask["model"],
            "hardware": ask["hardware"],
            "backend": "vllm",
            "context_length": ask["input_tokens"] + ask["output_tokens"],
            **({"speculation": speculation} if rates else {}),
            "workers": {"aggregated": worker},
        },
    }


def _refused(message: str, share: float) -> dict[str, Any]:
    """A refusal for want of memory is an answer; any other is a question put wrongly."""
    found = NO_ROOM.search(message)
    if found is None:
        raise RuntimeError(message)
    needed, capacity = (int(part) / GIB for part in found.groups())
    available = capacity * share
    return {
        "refused": f"{needed:.1f} GiB beside the KV cache, {available:.1f} GiB may be used",
        "needed_gib": round(needed, 2),
        "available_gib": round(available, 2),
    }


def _answer(ask: dict[str, Any], result: Any) -> dict[str, Any]:
    summary = result.summary
    memory = result.native["memory_diagnostics"]["aggregated"]
    cache_tokens = memory["estimated_num_gpu_blocks"] * BLOCK_TOKENS
    if summary["completed_requests"] < ask["requests"]:
        per_token = memory["kv_size_per_token_bytes"]
        needed = (ask["input_tokens"] + ask["output_tokens"]) * per_token / GIB
        return {
            "refused": f"the KV cache holds {cache_tokens} tokens, less than one request",
            "needed_gib": round(needed, 3),
            "available_gib": round(cache_tokens * per_token / GIB, 3),
        }
    longest = ask["input_tokens"] + ask["output_tokens"] + len(ask["acceptance_rates"])
    blocks = ask["max_sequences"] * (-(-longest // BLOCK_TOKENS) + 1)
    tokens_per_s = summary["output_throughput_tok_s"]
    gpus = ask.get("replicas", 1) * ask["tensor"] * ask.get("pipeline", 1)
    figures = {
        "output_tokens_per_s": tokens_per_s,
        "output_tokens_per_s_per_gpu": tokens_per_s / gpus,
        "ttft_p95_ms": summary["p95_ttft_ms"],
        "tpot_p95_ms": summary["p95_tpot_ms"],
        "e2e_p95_ms": summary["p95_e2e_latency_ms"],
    }
    return {
        "metrics": {name: float(f"{value:.5g}") for name, value in figures.items()},
        "duration_s": round(summary["duration_ms"] / 1000, 2),
        "cache_tokens": cache_tokens,
        "ample": memory["estimated_num_gpu_blocks"] >= blocks,
    }


if __name__ == "__main__":
    sys.exit(main())
