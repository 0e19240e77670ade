"""Whole studies with their confirmation, on launches that are made up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import SelectConfig
from sweeper.pareto.confirmed import BETTER
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import recommend
from sweeper.search.in_flight import InFlight, note
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.plan import TrialPlan
from sweeper.trial.run import REAL, TrialResult
from sweeper.verbs.running import prepare
from sweeper.verdicts import Verdict
from tests.factories import point
from tests.search.test_loop import Bench

SPACE = """
name: seqs
parameters:
  max_num_seqs: {choices: [4, 8, 16, 32, 64, 128], default: 8}
  block_size: {choices: [8, 16, 32], default: 16}
"""
SETTINGS = (
    "engine=mock", "hardware=h100_80gb", "model=qwen7b", "load.concurrency=[1,8]",
    "sampler=random", "tracking=none", "quality=none", "prior=none", "stop=none",
)  # fmt: skip
Figure = Callable[[TrialPlan], Any]


def gainful(plan: TrialPlan) -> float:
    """64 sequences are 10 % faster; each launch has 1 % of noise of its own."""
    noise = random.Random(f"{plan.number}/{plan.attempt}").gauss(1.0, 0.01)
    return noise * (110.0 if plan.deployment.get("max_num_seqs") == 64 else 100.0)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    """Make a bench from the throughput of a launch (or its fields), and settings."""
    (tmp_path / "space.yaml").write_text(SPACE)

    def make(figure: Figure = gainful, *settings: str) -> Bench:
        given = [*SETTINGS, f"space={tmp_path / 'space.yaml'}", *settings]
        cfg = compose(given, device_kind="cpu")
        paths = StudyPaths(tmp_path / "studies", "s")
        paths.create()

        def ends(plan: TrialPlan) -> dict[str, Any]:
            told = figure(plan)
            fields = told if isinstance(told, dict) else {"points": at_levels(plan, told)}
            return {"repeats": plan.repeats, **fields}

        made = Bench(prepare(cfg, lambda _: None), paths, ends)

        class Launcher:
            def __init__(self, engine: object) -> None: ...

            def run(self, plan: TrialPlan, _: object) -> TrialResult:
                return made.launch(plan)

        monkeypatch.setattr("sweeper.search.loop.LocalLauncher", Launcher)
        return made

    yield make


def at_levels(plan: TrialPlan, throughput: float) -> list[Any]:
    return [
        point(
            streams,
            throughput=throughput * streams**0.5,
            e2e_p95_ms=1e5 * streams**0.5 / throughput,
        )
        for streams in plan.load.concurrency
    ]


def kinds(journal: list[TrialOutcome]) -> Counter[str]:
    return Counter(outcome.kind for outcome in journal if outcome.launched)


def chosen(journal: list[TrialOutcome]) -> Recommendation:
    return recommend(points_frame(journal), SelectConfig())


def test_the_search_leaves_room_and_the_best_is_confirmed(bench: Callable[..., Bench]) -> None:
    study = bench(gainful, "budget.launches=24")
    ended = study.run()
    assert "left 9 launches of the budget to confirm" in ended
    seen = kinds(study.journal)
    assert seen["confirm"] == 9
    assert sum(seen.values()) == 24
    again = [plan for plan in study.launched if plan.kind == "confirm"]
    assert {tuple(plan.load.concurrency) for plan in again} <= {(1,), (8,)}
    found = chosen(study.journal)
    assert (found.confirmed, found.deployment.get("max_num_seqs")) == (True, 64)
    assert found.confirmation is not None and found.confirmation.verdict == BETTER


def test_a_small_budget_is_the_searches_alone(bench: Callable[..., Bench]) -> None:
    study = bench(gainful, "budget.launches=6")
    study.run()
    assert kinds(study.journal)["confirm"] == 0


def test_it_is_confirmed_later_by_a_larger_budget(bench: Callable[..., Bench]) -> None:
    bench(gainful, "budget.launches=6").run()
    study = bench(gainful, "budget.launches=15", "confirm.repeats=3")
    study.run()
    seen = kinds(study.journal)
    assert (sum(seen.values()), seen["confirm"]) == (15, 9)


def test_a_study_killed_while_it_confirms_goes_on_where_it_was(
    bench: Callable[..., Bench],
) -> None:
    study = bench(gainful, "budget.launches=21")
    study.run()
    whole = [told(outcome) for outcome in study.journal]
    lines = study.paths.trials_jsonl.read_bytes().splitlines(keepends=True)
    for kept in (12, 16, 20):
        study.paths.trials_jsonl.write_bytes(b"".join(lines[:kept]))
        left = study.journal[-1]
        note(study.paths.in_flight_json, InFlight(kept, 1, "confirm", dict(left.deployment)))
        study.run()
        assert [told(outcome) for outcome in study.journal] == whole


def told(outcome: TrialOutcome) -> tuple[Any, ...]:
    metrics = [point.metrics for point in outcome.points]
    return outcome.number, outcome.kind, outcome.deployment, outcome.repeats, metrics


def test_a_winner_that_crashes_gives_its_place_to_the_next_best(
    bench: Callable[..., Bench],
) -> None:
    def figure(plan: TrialPlan) -> Any:
        if plan.kind == "confirm" and plan.deployment.get("max_num_seqs") == 64:
            return {"verdict": Verdict.CRASH_UNDER_LOAD}
        return gainful(plan) * (1.06 if plan.deployment.get("max_num_seqs") == 32 else 1.0)

    study = bench(figure, "budget.launches=40")
    study.run()
    again = [o for o in study.journal if o.kind == "confirm"]
    crashed = [o.repeats for o in again if o.verdict is not Verdict.OK]
    assert len(crashed) == len(set(crashed)), "nobody is launched again after a crash"
    found = chosen(study.journal)
    assert found.deployment.get("max_num_seqs") == 32
    assert found.confirmed
    assert "is unstable" in found.reason


def test_an_engine_that_only_repeats_itself_is_not_asked_again(
    bench: Callable[..., Bench],
) -> None:
    def figure(plan: TrialPlan) -> dict[str, Any]:
        points = at_levels(plan, gainful(plan))
        return {"points": points, "timings_s": {"total": 60.0, REAL: 0.1}}

    study = bench(figure, "budget.launches=24")
    study.run()
    assert kinds(study.journal)["confirm"] == 0


def test_nothing_near_the_defaults_leaves_the_launches_unspent(
    bench: Callable[..., Bench],
) -> None:
    study = bench(lambda plan: 100.0 if not plan.deployment else 50.0, "budget.launches=21")
    assert "nothing came near enough to the defaults" in study.run()
    assert sum(kinds(study.journal).values()) == 12
