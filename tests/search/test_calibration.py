"""Launches of a study sharpen its model of memory; what contradicts it is told and taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.engine.protocol import EngineFacts
from sweeper.estimate.memory_launch import Calibration
from sweeper.hardware.facts import HardwareFacts
from sweeper.search.calibration import LiveCalibration, calibration_of
from sweeper.search.loop import StudyRun
from sweeper.search.setup import StudySetup
from sweeper.space.canonical import enumerate_canonical
from sweeper.tracking.journal import Journal
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Event, Note
from sweeper.trial.run import TrialResult
from sweeper.verbs.running import prepare
from sweeper.verdicts import Verdict
from tests.factories import outcome, point

DEVICE = HardwareFacts("cuda", "A10G", 1, 22.5, compute_capability=(8, 6))
SPACE = """
name: memory
parameters:
  gpu_memory_utilization: {choices: [0.7, 0.75, 0.8, 0.9], default: 0.9}
  max_model_len: {choices: [8192, 16384, 32768], default: 32768}
  max_num_seqs: {choices: [default, 512]}
"""
WEIGHTS_GIB, BESIDE_GIB, SEEN = 14.27, 1.9, 0.985
EFFECTIVE = {"max_num_seqs": 256, "max_num_batched_tokens": 2048}


def left_gib(deployment: Mapping[str, Any]) -> float:
    """What a made-up device has left for its cache."""
    more = 0.5 if deployment.get("max_num_seqs") == 512 else 0.0
    share = deployment.get("gpu_memory_utilization", 0.9)
    return float(share) * SEEN * DEVICE.memory_gib - WEIGHTS_GIB - BESIDE_GIB - more


def needed_gib(deployment: Mapping[str, Any]) -> float:
    return int(deployment.get("max_model_len", 32_768)) * 56 / 2**20


def fits(deployment: Mapping[str, Any]) -> bool:
    return needed_gib(deployment) <= left_gib(deployment)


def ended(
    number: int, deployment: dict[str, Any], verdict: Verdict | None = None, **fields: Any
) -> TrialOutcome:
    """A launch as its log would tell it."""
    works = fits(deployment)
    left, needed = left_gib(deployment), needed_gib(deployment)
    length = deployment.get("max_model_len", 32_768)
    learnt: dict[str, Any] = {
        "model_memory_gib": WEIGHTS_GIB,
        "kv_cache_memory_gib": round(left, 2),
        "max_full_length_requests": round(left / needed, 2),
    }
    if not works:
        learnt = {
            "rule": "kv_too_small_for_max_model_len",
            "max_model_len": length,
            "needed_kv_gib": round(needed, 2),
            "kv_cache_memory_gib": round(left, 2),
        }
    in_effect = {
        "max_model_len": length,
        "gpu_memory_utilization": deployment.get("gpu_memory_utilization", 0.9),
        **{name: deployment.get(name, value) for name, value in EFFECTIVE.items()},
    }
    return outcome(
        number,
        deployment=deployment,
        verdict=verdict or (Verdict.OK if works else Verdict.CAPACITY),
        learnt=learnt,
        points=[point(1), point(4)] if works else [],
        manifest={"effective_args": in_effect},
        **fields,
    )


@pytest.fixture
def setup(tmp_path: Path) -> StudySetup:
    (tmp_path / "space.yaml").write_text(SPACE)
    cfg = compose(
        [
            "engine=mock", "hardware=h100_80gb", "model=qwen7b", "load.concurrency=[1,4]",
            f"space={tmp_path / 'space.yaml'}", "sampler=random", "tracking=none",
            "budget.launches=60", "quality=none", "confirm=none", "workload=short",
        ],
        device_kind="cpu",
    )  # fmt: skip
    facts = EngineFacts("vllm", "0.33.0", "vllm", "cuda", predicted=False)
    return replace(prepare(cfg, lambda _: None), engine_facts=facts, hardware=DEVICE)


def test_figures_of_a_log_become_a_launch(setup: StudySetup) -> None:
    told = calibration_of([ended(0, {"max_model_len": 8192})], setup)
    (launch,) = told.launches
    assert (launch.model_gib, launch.cache_gib) == (14.27, round(left_gib({}), 2))
    assert launch.request_gib == pytest.approx(0.4375, rel=0.01)
    assert (launch.request_tokens, launch.started, launch.short) == (8192, True, False)
    assert launch.value("max_num_seqs") == 256
    assert told.notes == ()


def test_a_refused_length_becomes_a_launch(setup: StudySetup) -> None:
    asked = {"gpu_memory_utilization": 0.75}
    (launch,) = calibration_of([ended(3, asked)], setup).launches
    assert (launch.request_gib, launch.request_tokens) == (1.75, 32_768)
    assert (launch.started, launch.short, launch.model_gib) == (False, True, None)


def test_what_told_nothing_or_was_not_measured_is_left_out(setup: StudySetup) -> None:
    silent = outcome(0, learnt={})
    unlaunched = replace(ended(1, {}), launched=False)
    crashed = outcome(2, verdict=Verdict.CAPACITY, learnt={"rule": "device_out_of_memory"})
    assert calibration_of([silent, unlaunched, crashed], setup) == Calibration()
    for facts in (
        EngineFacts("simulate", "1", "x", "cuda", predicted=True),
        EngineFacts("transformers", "5", "x", "cuda", predicted=False),
    ):
        assert calibration_of([ended(0, {})], replace(setup, engine_facts=facts)) == Calibration()


def test_contradictions_are_told_once_and_lift_what_they_refused(setup: StudySetup) -> None:
    outcomes = [ended(0, {})]
    heard: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Note):
            heard.append(event.text)

    live = LiveCalibration(setup, lambda: outcomes, listen)
    asked = {"gpu_memory_utilization": 0.7, "max_model_len": 16_384}
    assert [v.rule for v in setup.violations(asked, 0, live.look())] == ["memory_fits"]
    refused = outcome(
        1, deployment=asked, verdict=Verdict.INFEASIBLE_CONFIG, learnt={"rule": "memory_fits"}
    )
    refused.launched = False
    assert not live.is_lifted(refused, lambda d: setup.violations(d, 0, live.look()))
    # A deployment works that lies inside what the first launch proves; its log tells nothing more.
    wonder = replace(ended(2, {**asked, "gpu_memory_utilization": 0.9}), learnt={})
    wonder.deployment = dict(asked)
    wonder.learnt = {"model_memory_gib": WEIGHTS_GIB}
    wonder.verdict = Verdict.OK
    outcomes.append(wonder)
    told = live.look()
    assert told.doubt_gib > 0
    assert len(heard) == 1
    assert "trial 2 works, although" in heard[0]
    assert live.is_lifted(refused, lambda d: setup.violations(d, 0, live.look()))
    by_another = replace(refused, learnt={"rule": "heads_divide"})
    assert not live.is_lifted(by_another, lambda _: [])
    live.look()
    assert len(heard) == 1


@dataclass
class Launches:
    """Launches of the made-up device, as a study's launcher."""

    each: list[dict[str, Any]] = field(default_factory=list)

    def run(self, plan: TrialPlan, _: object) -> TrialResult:
        self.each.append(dict(plan.deployment))
        made = ended(plan.number, dict(plan.deployment), kind=plan.kind, attempt=plan.attempt)
        made.deployment_hash = plan.deployment_hash
        return TrialResult(made)


class Silent:
    """A tracker that takes whatever it is told."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def test_a_study_launches_all_that_fits_and_few_that_do_not(
    setup: StudySetup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = Launches()
    monkeypatch.setattr("sweeper.search.loop.LocalLauncher", lambda _: launches)
    paths = StudyPaths(tmp_path / "studies", "s")
    paths.create()
    journal = Journal(paths.trials_jsonl)
    StudyRun(setup, paths, journal, Silent(), lambda _: None).run()  # type: ignore[arg-type]
    told = journal.read()
    everything = enumerate_canonical(setup.space, 100) or []
    worked = [each for each in launches.each if fits(each)]
    assert len(worked) == sum(fits(each) for each in everything)
    assert not any(fits(each.deployment) for each in told if not each.launched)
    # Learnt bounds alone launch eight misfits of this space.
    assert len(launches.each) - len(worked) <= 4
    by_arithmetic = [each for each in told if each.learnt.get("rule") == "memory_fits"]
    assert "as measured" in by_arithmetic[0].cause
