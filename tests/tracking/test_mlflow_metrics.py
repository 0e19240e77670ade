"""The metrics of a child run, by name, value and step."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from sweeper.tracking.mlflow_metrics import BestSoFar, trial_metrics
from sweeper.verdicts import Verdict
from tests.factories import outcome, point


def by_name(**fields: object) -> dict[str, float]:
    return {name: value for name, value, _ in trial_metrics(outcome(1, **fields))}  # type: ignore[arg-type]


def test_what_compares_trials_has_one_value_and_comes_first() -> None:
    told = trial_metrics(outcome(1, points=[point(1, throughput=5), point(8, throughput=9)]))
    assert told[0] == ("best_output_tokens_per_s_per_gpu", 9.0, 0)
    names = [name for name, _, _ in told]
    single = [name for name in names if name.startswith(("best_", "quality"))]
    assert len(single) == len(set(single))
    assert names.index("output_tokens_per_s") > names.index("quality")


def test_the_best_throughput_has_the_interval_of_its_point() -> None:
    told = by_name(points=[point(8, throughput=100.0, spread=0.02)])
    assert (told["best_output_tokens_per_s.low"], told["best_output_tokens_per_s.high"]) == (
        98.0,
        102.0,
    )
    bare = point(8)
    bare.intervals = {}
    assert "best_output_tokens_per_s.low" not in by_name(points=[bare])


def test_the_quality_that_ranks_has_a_name_of_its_own() -> None:
    told = by_name(agreement=0.97)
    assert (told["quality"], told["quality_se"]) == (0.97, 0.005)
    assert "quality" not in by_name(agreement=None)


@given(st.lists(st.tuples(st.floats(1, 1e6), st.booleans(), st.booleans()), max_size=30))
def test_the_best_so_far_never_falls_and_counts_launches(
    trials: list[tuple[float, bool, bool]],
) -> None:
    best, told = BestSoFar(), []
    for number, (throughput, ok, launched) in enumerate(trials):
        verdict = Verdict.OK if ok and launched else Verdict.CAPACITY
        one = outcome(number, verdict=verdict, launched=launched)
        if verdict is Verdict.OK:
            one.points = [point(throughput=throughput)]
        if (item := best.take(one)) is not None:
            told.append(item)
    values = [value for _, value, _ in told]
    assert values == sorted(values)
    assert all(math.isfinite(value) for value in values)
    steps = [step for _, _, step in told]
    assert steps == sorted(set(steps))
    if told:
        assert steps[-1] == sum(launched for _, _, launched in trials)


def test_what_was_cut_short_or_only_confirms_is_no_best_so_far() -> None:
    best = BestSoFar()
    best.take(outcome(0, points=[point(throughput=10)]))
    cut = outcome(1, points=[point(throughput=99)], partial="hopeless")
    again = outcome(2, points=[point(throughput=99)], kind="confirm", repeats=0)
    assert best.take(cut) == ("best_so_far_output_tokens_per_s", 10.0, 2)
    assert best.take(again) == ("best_so_far_output_tokens_per_s", 10.0, 3)
