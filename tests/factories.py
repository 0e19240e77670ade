"""Made-up but complete outcomes for tests of the rooms that read them."""

from __future__ import annotations

import hashlib
from typing import Any

from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.verdicts import Phase, Verdict


def point(
    concurrency: int = 8,
    *,
    throughput: float = 100.0,
    e2e_p95_ms: float = 1000.0,
    ttft_p95_ms: float = 100.0,
    tpot_p95_ms: float = 20.0,
    spread: float = 0.02,
    valid: bool = True,
    load: dict[str, Any] | None = None,
    **metrics: float,
) -> Point:
    """One operating point; every interval is ± `spread` around its value.

    Args:
        load: what was asked instead of a closed loop, see `open_load`.
    """
    values = {
        "output_tokens_per_s": throughput,
        "output_tokens_per_s_per_gpu": throughput,
        "e2e_p95_ms": e2e_p95_ms,
        "ttft_p95_ms": ttft_p95_ms,
        "tpot_p95_ms": tpot_p95_ms,
        **metrics,
    }
    return Point(
        load={"kind": "closed", "concurrency": concurrency} if load is None else load,
        metrics=values,
        intervals={k: [v * (1 - spread), v * (1 + spread)] for k, v in values.items()},
        n=64,
        valid=valid,
        reasons=[] if valid else ["success rate 0.5 is below 0.99"],
        low_confidence=["e2e_p95_ms"],
    )


def open_load(rate_per_s: float, **told: Any) -> dict[str, Any]:
    """Random arrivals at a rate, as a point records them; `told` is what came of it."""
    return {"kind": "open", "rate_per_s": rate_per_s, "arrivals": "poisson", **told}


def open_study() -> list[TrialOutcome]:
    """Baseline and one better deployment at request rates, driven in the order of a bisection."""
    return [
        outcome(
            0,
            points=[
                point(load=open_load(1.0), throughput=50, e2e_p95_ms=400, achieved_concurrency=2.5),
                point(load=open_load(4.0), throughput=120, e2e_p95_ms=900, achieved_concurrency=20),
                point(load=open_load(2.0), throughput=90, e2e_p95_ms=600, achieved_concurrency=6),
            ],
        ),
        outcome(
            1,
            deployment={"max_num_seqs": 64},
            points=[
                point(load=open_load(1.0), throughput=52, e2e_p95_ms=300, achieved_concurrency=2.2),
                point(
                    load=open_load(4.0, saturated=True),
                    throughput=150,
                    e2e_p95_ms=700,
                    achieved_concurrency=25,
                ),
                point(load=open_load(2.0), throughput=99, e2e_p95_ms=450, achieved_concurrency=5),
            ],
        ),
    ]


def quality(agreement: float = 1.0, loglik_change_nats: float = 0.0) -> QualityScore:
    """A score with a standard error of half a per cent."""
    return QualityScore(
        agreement=agreement,
        agreement_se=0.005,
        loglik_change_nats=loglik_change_nats,
        loglik_change_se_nats=0.001,
        tokens=1000,
        key="k0",
    )


def deployment_hash(deployment: dict[str, Any]) -> str:
    """Twelve hexadecimal digits, the same for the same deployment."""
    return hashlib.sha256(repr(sorted(deployment.items())).encode()).hexdigest()[:12]


def outcome(
    number: int = 0,
    *,
    kind: str | None = None,
    deployment: dict[str, Any] | None = None,
    points: list[Point] | None = None,
    verdict: Verdict = Verdict.OK,
    agreement: float | None = 1.0,
    **fields: Any,
) -> TrialOutcome:
    """One outcome: number 0 is the baseline, the others are search trials."""
    parameters = {} if deployment is None else deployment
    ok = verdict is Verdict.OK
    defaults: dict[str, Any] = {
        "phase": Phase.STOP if ok else Phase.START,
        "cause": "" if ok else "No available memory for the cache blocks.",
        "remedy": "" if ok else "raise gpu_memory_utilization",
        "evidence": "" if ok else "ValueError: No available memory for the cache blocks.",
        "timings_s": {"start": 30.0, "load": 20.0, "total": 52.0},
        "started_at": "2024-01-01T00:00:00+00:00",
        "manifest": {"engine": {"name": "vllm", "version": "0.32.0"}},
    }
    return TrialOutcome(
        number=number,
        kind=kind or ("baseline" if number == 0 else "search"),
        deployment=parameters,
        deployment_hash=deployment_hash(parameters),
        verdict=verdict,
        points=([point()] if ok else []) if points is None else points,
        quality=quality(agreement) if ok and agreement is not None else None,
        **{**defaults, **fields},
    )


def study() -> list[TrialOutcome]:
    """A small study: baseline, two better deployments, one out of memory, one refused."""
    return [
        outcome(
            0,
            points=[
                point(1, throughput=20, e2e_p95_ms=400),
                point(8, throughput=100, e2e_p95_ms=900),
                point(32, throughput=180, e2e_p95_ms=3000),
            ],
        ),
        outcome(
            1,
            deployment={"max_num_seqs": 64, "enable_prefix_caching": False},
            points=[
                point(1, throughput=22, e2e_p95_ms=380),
                point(8, throughput=150, e2e_p95_ms=700),
                point(32, throughput=320, e2e_p95_ms=1800),
            ],
        ),
        outcome(
            2,
            deployment={"quantization": "int8_per_channel_weight_only"},
            points=[
                point(1, throughput=30, e2e_p95_ms=300),
                point(8, throughput=130, e2e_p95_ms=800),
                point(32, throughput=200, e2e_p95_ms=2500, valid=False),
            ],
            agreement=0.95,
        ),
        outcome(3, deployment={"max_num_seqs": 4096}, verdict=Verdict.CAPACITY),
        outcome(
            4,
            deployment={"tensor_parallel_size": 2},
            verdict=Verdict.INFEASIBLE_CONFIG,
            launched=False,
            phase=Phase.PLAN,
            cause="9 attention heads cannot be split over 2 devices",
        ),
    ]
