"""A made-up study whose deployments store weights and cache in different ways."""

from __future__ import annotations

from typing import Any

from sweeper.trial.outcome import Point, QualityScore, TrialOutcome
from sweeper.verdicts import Phase, Verdict
from tests.factories import outcome, point

GIB = 1024**3
MODEL = "/models/tiny"
KEYS = {"w4a16": "a" * 16, "w8a8": "b" * 16, "awq": "c" * 16}


def score(
    change: float = 0.0, *, se: float = 0.002, nats: float = 0.0, **fields: Any
) -> QualityScore:
    """A score whose agreement is `change` beside the reference's 0.974, from paired differences."""
    return QualityScore(
        **{
            "agreement": 0.974 + change,
            "agreement_se": 0.005,
            "loglik_change_nats": nats,
            "loglik_change_se_nats": 0.004,
            "tokens": 1024,
            "key": "k0",
            "agreement_change": change,
            "agreement_change_se": se,
            **fields,
        }
    )


def ladder(speed: float, *, spread: float = 0.03) -> list[Point]:
    """Points at one, eight and 32 streams; `speed` 1 is the baseline's."""
    return [
        point(
            streams,
            throughput=tokens * speed,
            ttft_p95_ms=ttft / speed,
            tpot_p95_ms=20 / speed,
            e2e_p95_ms=latency / speed,
            spread=spread,
            **({"single_stream_tokens_per_s": tokens * speed} if streams == 1 else {}),
        )
        for streams, tokens, ttft, latency in (
            (1, 20, 60, 400), (8, 100, 90, 900), (32, 180, 300, 3000),
        )
    ]  # fmt: skip


def made(
    recipe: str, tool: str, *, seconds: float = 92.0, reused: bool = False, **fields: Any
) -> dict[str, Any]:
    """The manifest's word of a checkpoint that was made here."""
    return {
        "key": KEYS[recipe],
        "recipe": {
            "name": recipe, "tool": tool, "bits": 4, "group_size": 64, "symmetric": True,
            "calibration": "builtin", "calibration_samples": 128, "calibration_tokens": 512,
            **fields,
        },
        "versions": {tool: "1.2.3", "torch": "2.13.0"},
        "made_s": seconds,
        "reused": reused,
        "digest": "d" * 64,
    }  # fmt: skip


def traded(
    number: int,
    *,
    deployment: dict[str, Any] | None = None,
    speed: float = 1.0,
    quality: QualityScore | None = None,
    checkpoint_gib: float | None = 0.25,
    model_gib: float | None = 0.26,
    kv_tokens: int | None = 200_000,
    made_here: dict[str, Any] | None = None,
    **fields: Any,
) -> TrialOutcome:
    """A trial with everything the trade is made of."""
    manifest: dict[str, Any] = {
        "engine": {"name": "vllm", "version": "0.32.0"},
        "model": {"path": MODEL},
        "checkpoint": MODEL if made_here is None else f"/cache/checkpoints/{made_here['key']}",
    }
    if checkpoint_gib is not None:
        manifest["checkpoint_bytes"] = round(checkpoint_gib * GIB)
    if made_here is not None:
        manifest["made"] = made_here
    told = {"model_memory_gib": model_gib, "kv_cache_tokens": kv_tokens}
    found = outcome(
        number,
        deployment=deployment,
        manifest=manifest,
        learnt={name: value for name, value in told.items() if value is not None},
        **{"points": ladder(speed), **fields},
    )
    found.quality = quality
    return found


def traded_study() -> list[TrialOutcome]:
    """Baseline and its tuned form, online int8, two settings of W4A16, W8A8, a KV cache in fp8,
    a broken checkpoint, one whose tool gave up, and one that was refused."""
    return [
        traded(0, quality=score(se=0.001)),
        traded(1, deployment={"max_num_seqs": 64}, speed=1.1, quality=score(se=0.0)),
        traded(
            2, deployment={"quantization": "int8_per_channel_weight_only"}, speed=0.98,
            quality=score(-0.001, nats=-0.002), model_gib=0.16, kv_tokens=204_000,
        ),
        traded(
            3, deployment={"quantization": "w4a16", "quantize.group_size": 32}, speed=1.25,
            quality=score(-0.041, se=0.006, nats=-0.06), checkpoint_gib=0.13, model_gib=0.14,
            kv_tokens=206_500, made_here=made("w4a16", "llmcompressor", group_size=32),
        ),
        traded(
            4, deployment={"quantization": "w4a16"}, speed=1.3,
            quality=score(-0.05, se=0.007, nats=-0.08), checkpoint_gib=0.12, model_gib=0.13,
            kv_tokens=207_000, made_here=made("w4a16", "llmcompressor", reused=True),
        ),
        traded(
            5, deployment={"quantization": "w4a16", "gpu_memory_utilization": 0.6}, speed=1.1,
            quality=score(-0.05, se=0.007, nats=-0.08), checkpoint_gib=0.12, model_gib=0.13,
            kv_tokens=407_000, made_here=made("w4a16", "llmcompressor", reused=True),
        ),
        traded(
            6,
            deployment={"quantization": "w8a8", "gpu_memory_utilization": 0.6, "max_num_seqs": 4},
            speed=1.45, quality=score(-0.006, se=0.0025, nats=-0.011), checkpoint_gib=0.17,
            model_gib=0.18, kv_tokens=404_000,
            made_here=made("w8a8", "llmcompressor", bits=8, group_size=-1, seconds=148.0),
        ),
        traded(
            7, deployment={"kv_cache_dtype": "fp8"}, speed=1.04,
            quality=score(-0.012, se=0.004, nats=-0.009), kv_tokens=401_000,
        ),
        traded(
            8, deployment={"quantization": "awq"}, speed=1.5, verdict=Verdict.QUALITY_FAIL,
            phase=Phase.QUALITY, quality=score(-0.95, se=0.006, nats=-9.3), checkpoint_gib=0.11,
            model_gib=0.12, kv_tokens=208_000, made_here=made("awq", "autoawq", seconds=310.0),
            cause="log-likelihood of the reference fell by 9.300 nats a token, more than 0.2 "
            "beyond its error",
            remedy="choose a milder quantization",
        ),
        traded(
            9, deployment={"quantization": "gptq"}, verdict=Verdict.INFEASIBLE_CONFIG, points=[],
            phase=Phase.PLAN, launched=False, checkpoint_gib=None, model_gib=None, kv_tokens=None,
            cause="auto_gptq refuses to quantize without an NVIDIA GPU",
            remedy="use quantize=gptqmodel",
        ),
        traded(
            10, deployment={"quantization": "w4a16_awq"}, verdict=Verdict.CAPACITY, points=[],
            phase=Phase.QUANTIZE, checkpoint_gib=None, model_gib=None, kv_tokens=None,
            cause="making the checkpoint took more than 8 GiB", remedy="raise quantize.memory_gib",
        ),
    ]  # fmt: skip
