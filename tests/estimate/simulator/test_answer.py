"""The simulator's own words, as verdicts."""

from __future__ import annotations

import pytest

from sweeper.estimate.simulator.answer import SimulatorAnswer, read_answer, refusal
from sweeper.verdicts import Verdict

# As the pinned version words them.
NO_BUDGET = (
    "PredictionExecutionError: ValueError: no KV budget: non-KV memory (19634585600 bytes) "
    "meets/exceeds the KV-cache memory limit (capacity=151397597184 bytes)"
)
HEADS = (
    "PredictionExecutionError: ValueError: no timing data for /tmp/x with vllm None on h200_sxm: "
    "op_level/fpm_interpolation: AssertionError: num_heads 28 should be divisible by tp_size 8. "
    "Prediction will not fall back to an untrained regression estimator."
)
GAP = (
    "PredictionExecutionError: RuntimeError: AISimulate replay failed: engine error: generalized "
    "engine worker 0 is now poisoned because a rank may have been partially mutated: executing "
    "attention-DP rank 0: external prefill prediction failed: PerfDataNotAvailableError: perf "
    "database error: GEMM perf data missing for int8_wo"
)
FLOPS = (
    "RuntimeError: AIC static_ctx evidence prediction failed: MissingSystemFlopsError: missing "
    "system flops: quant mode 'nvfp4' needs it"
)
MODEL = "ValueError: no timing data for /tmp/x with vllm None on h200_sxm: unsupported architecture"
STALL = (
    "RuntimeError: AISimulate replay failed: replay invariant violated: offline replay detected "
    "an effect-free zero-duration pass with 64 in-flight requests remaining"
)


@pytest.mark.parametrize(
    ("said", "verdict", "rule", "cause"),
    [
        (NO_BUDGET, Verdict.CAPACITY, "simulated_memory", "weights and buffers leave no memory"),
        ("no_completed_requests: No requests", Verdict.CAPACITY, "simulated_memory", "too small"),
        (HEADS, Verdict.INFEASIBLE_CONFIG, "simulated_heads", "num_heads 28 should be divisible"),
        (STALL, Verdict.CAPACITY, "simulated_stall", "no request can be scheduled"),
        (GAP, Verdict.UNKNOWN, "simulated_gap", "never timed"),
        (FLOPS, Verdict.UNKNOWN, "simulated_gap", "never timed"),
        (MODEL, Verdict.UNKNOWN, "simulated_model", "no timing of this model"),
        ("KeyError: 'x'", Verdict.UNKNOWN, "simulated_fault", "the simulator failed: KeyError"),
    ],
)
def test_a_refusal_has_a_verdict(said: str, verdict: Verdict, rule: str, cause: str) -> None:
    found = refusal(said)
    assert (found.verdict, found.learnt["rule"]) == (verdict, rule)
    assert cause in found.cause and found.remedy
    assert found.evidence == said


def test_figures_are_read_as_they_are_told() -> None:
    told = {"metrics": {"ttft_p95_ms": 3}, "n": 8, "duration_s": 1, "tables": "0.24.0"}
    assert read_answer(told) == SimulatorAnswer({"ttft_p95_ms": 3.0}, 8, 1.0, {}, "0.24.0")
