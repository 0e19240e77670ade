"""A worker in the simulator's place: figures by a formula, refusals by the deployment."""

from __future__ import annotations

import os
from typing import Any

import worker_protocol

GEMM_MS = {"fp8": 3.0, "fp8_block": 3.0}


def begin(worker: worker_protocol.Worker) -> Any:
    worker.phase("load the simulator")
    models: dict[str, dict[str, Any]] = {}

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        models.update(question["models"])
        return {"answers": [predict(ask) for ask in question["asks"]]}

    def predict(ask: dict[str, Any]) -> dict[str, Any]:
        role = ask["config"]["engine"]["workers"]["aggregated"]
        traffic = ask["config"]["traffic"]
        mode = role["timing"].get("gemm_quant_mode")
        if role["scheduler"]["max_sequences"] == 13:
            os._exit(1)
        if traffic["load"].get("concurrency") == 13:
            return {"refused": "no_completed_requests: KV capacity"}
        if models[ask["model"]].get("model_type") == "unheard_of":
            return {"refused": "ValueError: no timing data for it"}
        if mode not in {None, *GEMM_MS}:
            return {"refused": f"PerfDataNotAvailableError: GEMM perf data missing for {mode}"}
        if role["kv_cache"]["capacity"]["memory_fraction"] < 0.5:
            return {"refused": "no KV budget: non-KV memory (9 bytes) meets it (capacity=8 bytes)"}
        streams = min(traffic["load"].get("concurrency", 4), role["scheduler"]["max_sequences"])
        tpot_ms = GEMM_MS.get(str(mode), 5.0) + 0.05 * streams
        output = 1e3 * streams / tpot_ms
        metrics = {
            "output_tokens_per_s": output,
            "output_tokens_per_s_per_gpu": output / ask["devices"],
            "ttft_p95_ms": 20.0 * streams,
            "tpot_p95_ms": tpot_ms,
            "e2e_mean_ms": 128 * tpot_ms,
            "e2e_p95_ms": 130 * tpot_ms,
            "input_tokens_mean": traffic["source"]["input_tokens"],
            "output_tokens_mean": traffic["source"]["output_tokens"],
            "achieved_concurrency": streams,
        }
        learnt = {"kv_cache_tokens": 1000, "pid": os.getpid()}
        n = traffic["stop"]["requests"]
        return {"metrics": metrics, "n": n, "duration_s": 2.0, "learnt": learnt, "tables": "0.24.0"}

    return answer


worker_protocol.converse(begin)
