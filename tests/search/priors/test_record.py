from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sweeper.search.priors.guide import Guide
from sweeper.search.priors.record import predictions_of, prior_errors, prior_weights
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome
from tests.search.priors.made import Told, config, measured, truth

CFG = config()
SPACE = parse_space(CFG.space)
THROUGHPUT = "output_tokens_per_s_per_gpu"
METRICS = (THROUGHPUT, "e2e_p95_ms", "ttft_p95_ms")
SEQS = (8, 16, 128, 256)


def study(speed: Callable[[Mapping[str, Any]], float]) -> tuple[list[TrialOutcome], Guide]:
    """A study that was led by a prior, as its journal has it."""
    guide = Guide([Told(speed)], CFG, SPACE)
    outcomes = []
    for number, deployment in enumerate([{}, *({"max_num_seqs": n} for n in SEQS)]):
        made = measured(number, deployment)
        made.manifest = {**made.manifest, **guide.conditions(deployment)}
        guide.learn(made)
        outcomes.append(TrialOutcome.from_dict(made.to_dict()))
    return outcomes, guide


def test_errors_are_told_as_predicted_and_after_calibration() -> None:
    outcomes, _ = study(lambda one: 1.5 * truth(one))
    first, second = prior_errors(outcomes, METRICS)
    assert (first.kind, first.metric, first.points) == ("simulator", THROUGHPUT, 2 * len(SEQS))
    assert first.error_share == pytest.approx(0.5)
    assert first.calibrated_error_share == pytest.approx(0.0)
    assert first.rank_correlation == pytest.approx(1.0)
    assert second.metric == "e2e_p95_ms"
    assert second.error_share == pytest.approx(1 / 3)


def test_the_order_is_told_within_each_level() -> None:
    """Levels differ by so much that any prior would rank well over all of them."""
    outcomes, _ = study(lambda one: 10.0 / truth(one))
    first, *_ = prior_errors(outcomes, METRICS)
    assert first.rank_correlation == pytest.approx(-1.0)


def test_too_few_trials_have_no_order_and_none_no_error() -> None:
    outcomes, _ = study(truth)
    (few,) = prior_errors(outcomes[:3], (THROUGHPUT,))
    assert few.rank_correlation is None
    assert prior_errors(outcomes[:1], METRICS) == []
    assert prior_errors([measured(0, {}), measured(1, {"max_num_seqs": 8})], METRICS) == []


def test_without_a_baseline_nothing_is_calibrated() -> None:
    outcomes, _ = study(truth)
    (alone,) = prior_errors(outcomes[1:], (THROUGHPUT,))
    assert alone.calibrated_error_share is None


@pytest.mark.parametrize("speed", [truth, lambda one: 10.0 / truth(one)])
def test_weights_from_the_journal_are_the_guides_own(
    speed: Callable[[Mapping[str, Any]], float],
) -> None:
    outcomes, guide = study(speed)
    assert prior_weights(outcomes, CFG) == pytest.approx(guide.weights)


def test_a_journal_of_an_earlier_version_has_no_priors() -> None:
    outcomes = [measured(0, {}), measured(1, {"max_num_seqs": 8})]
    assert prior_weights(outcomes, CFG) == {}
    assert prior_weights([], CFG) == {}


def test_what_is_no_figure_in_a_manifest_is_left_out() -> None:
    made = measured(0, {})
    level = {"concurrency 1": {THROUGHPUT: "fast", "e2e_p95_ms": 3.0, "x": float("inf")}}
    made.manifest = {"prior": {"simulator": {**level, "concurrency 5": {}}, "odd": 3}}
    (point,) = predictions_of(made)["simulator"].points
    assert point.metrics == {"e2e_p95_ms": 3.0}
    made.manifest = {"prior": "none"}
    assert predictions_of(made) == {}
