"""The manifest: the conditions that decide whether two numbers may be compared."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sweeper.config.schema import LoadConfig
from sweeper.engine.protocol import RunningServer
from sweeper.hardware.facts import REMOTE
from sweeper.load.decoding import Decoding
from sweeper.load.level import BATCH, CLOSED, REPLAY
from sweeper.trial.plan import TrialPlan


def plan_manifest(plan: TrialPlan) -> dict[str, Any]:
    """What is known before the launch: study conditions, checkpoint, workload, decoding."""
    return {
        **plan.conditions,
        **_checkpoint(plan),
        "devices": plan.device_count,
        "workload": {"name": plan.workload.name, "kind": plan.workload.kind},
        "decoding": Decoding.of(plan.workload).conditions(),
        "load": _load(plan.load),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _checkpoint(plan: TrialPlan) -> dict[str, Any]:
    """What is served and how precisely; nothing is known of that on a server that is not ours."""
    if plan.conditions.get("engine", {}).get("device") == REMOTE:
        return {}
    return {
        "checkpoint": plan.checkpoint,
        "precision": plan.engine_parameters.get("dtype", plan.dtype or "engine default"),
        "quantization": plan.deployment.get("quantization", "none"),
    }


def _load(load: LoadConfig) -> dict[str, Any]:
    """How the ladder was made and warmed up; what each level asked for stands at its point."""
    given: dict[str, Any]
    if load.kind in {CLOSED, BATCH}:
        given = {"concurrency": list(load.concurrency)}
    elif load.kind == REPLAY:
        given = {"time_scale": list(load.time_scale)}
    else:
        given = {"rate_per_s": list(load.rate_per_s), "arrivals": load.arrivals}
    told: dict[str, Any] = {
        "kind": load.kind,
        "levels": load.levels,
        **given,
        "repeats": load.repeats,
        "requests_per_stream": load.requests_per_stream,
        "min_requests": load.min_requests,
        "duration_s": load.duration_s,
        "warm_up": {
            "requests_per_stream": load.warmup_requests_per_stream,
            "max_rounds": load.warmup_max_rounds,
            "tolerance_share": load.warmup_tolerance_share,
        },
        "goodput": asdict(load.goodput),
    }
    if load.arrivals == "gamma":
        told["burstiness"] = load.burstiness
    return told


def server_manifest(server: RunningServer) -> dict[str, Any]:
    """What the running server says of itself: its command line and effective arguments."""
    return {
        "argv": list(server.argv),
        "effective_args": dict(server.effective_args),
        "server_facts": dict(server.learnt),
    }
