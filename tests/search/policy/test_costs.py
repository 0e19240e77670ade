from __future__ import annotations

from sweeper.search.policy.costs import ASSUMED, Costs, Step
from tests.factories import outcome


def took(number: int, seconds: float, made_s: float = 0.0, **deployment: object) -> object:
    timings = {"total": seconds, **({"quantize": made_s} if made_s else {})}
    return outcome(number, deployment=dict(deployment), timings_s=timings)


def test_what_was_served_before_is_a_relaunch() -> None:
    costs = Costs(lambda deployment: deployment.get("quantization") == "awq")
    known = [outcome(0), outcome(1, deployment={"quantization": "fp8_per_tensor"})]
    step = costs.after(known)
    assert step({"max_num_seqs": 4}) is Step.RELAUNCH
    assert step({"quantization": "fp8_per_tensor", "max_num_seqs": 4}) is Step.RELAUNCH
    assert step({"quantization": "gptq"}) is Step.NEW_CHECKPOINT
    assert step({"quantization": "awq"}) is Step.QUANTIZE
    other_recipe = {"quantization": "fp8_per_tensor", "quantize.bits": 4}
    assert step(other_recipe) is not Step.RELAUNCH


def test_costs_are_learnt_from_what_launches_took() -> None:
    assert Costs().relative([]) == ASSUMED
    learnt = Costs().relative(
        [took(0, 100), took(1, 50), took(2, 70, quantization="gptq"), took(3, 60),
         took(4, 600, 500.0, quantization="awq")]  # type: ignore[list-item]
    )  # fmt: skip
    assert learnt[Step.RELAUNCH] == 1.0
    assert learnt[Step.NEW_CHECKPOINT] == 85 / 55
    assert learnt[Step.QUANTIZE] == 600 / 55
