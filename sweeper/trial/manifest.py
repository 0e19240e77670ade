"""The manifest: the conditions that decide whether two numbers may be compared."""

from __future__ import annotations

from typing import Any

from sweeper.engine.protocol import RunningServer
from sweeper.trial.plan import TrialPlan


def plan_manifest(plan: TrialPlan) -> dict[str, Any]:
    """What is known before the launch: study conditions, checkpoint, workload, decoding."""
    workload = plan.workload
    return {
        **plan.conditions,
        "checkpoint": plan.checkpoint,
        "precision": plan.engine_parameters.get("dtype", plan.dtype or "engine default"),
        "quantization": plan.deployment.get("quantization", "none"),
        "workload": {
            "name": workload.name,
            "kind": workload.kind,
            "input_tokens": workload.input_tokens,
            "output_tokens": workload.output_tokens,
            "seed": workload.seed,
        },
        "decoding": {
            "temperature": workload.temperature,
            "ignore_eos": workload.ignore_eos,
        },
        "load": {
            "kind": "closed",
            "concurrency": list(plan.load.concurrency),
            "requests_per_stream": plan.load.requests_per_stream,
            "warmup_requests_per_stream": plan.load.warmup_requests_per_stream,
        },
    }


def server_manifest(server: RunningServer) -> dict[str, Any]:
    """What the running server says of itself: its command line and effective arguments."""
    return {
        "argv": list(server.argv),
        "effective_args": dict(server.effective_args),
        "server_facts": dict(server.learnt),
    }
