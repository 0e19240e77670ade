"""The study's own decisions, on launches that are made up: nothing is started."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.engine.mock.machine import Machine
from sweeper.engine.mock.options import MockOptions
from sweeper.engine.mock.telling import failure_lines
from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.errors import StudyError
from sweeper.search.bounds.learn import learn
from sweeper.search.bounds.store import write_dropped
from sweeper.search.loop import MAX_REFUSED_IN_A_ROW, StudyRun
from sweeper.search.setup import StudySetup
from sweeper.tracking.journal import Journal
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Event, Note
from sweeper.trial.run import TrialResult
from sweeper.verbs.running import prepare
from sweeper.verdicts import Diagnosis, Phase, Verdict
from tests.factories import outcome, point

UTIL = "gpu_memory_utilization"
SPACE = """
name: memory
parameters:
  gpu_memory_utilization: {choices: [0.2, 0.3, 0.4, 0.5, 0.6, 0.9], default: 0.9}
  max_num_seqs: {choices: [default, 8]}
"""
ROOM_FROM = 0.6

Ends = Callable[[TrialPlan], dict[str, Any]]
"""How a launch ends: fields of its outcome; `halt` beside them."""


class SilentTracker:
    """Takes whatever it is told, and says nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


@dataclass
class Bench:
    """A study of made-up launches that can be run again and again."""

    setup: StudySetup
    paths: StudyPaths
    ends: Ends
    heard: list[str] = field(default_factory=list)
    launched: list[TrialPlan] = field(default_factory=list)

    def run(self) -> str:
        def listen(event: Event) -> None:
            if isinstance(event, Note):
                self.heard.append(event.text)

        tracker: Any = SilentTracker()
        return StudyRun(
            self.setup, self.paths, Journal(self.paths.trials_jsonl), tracker, listen
        ).run()

    @property
    def journal(self) -> list[TrialOutcome]:
        return Journal(self.paths.trials_jsonl).read()

    def launch(self, plan: TrialPlan) -> TrialResult:
        self.launched.append(plan)
        fields = {"verdict": Verdict.OK, **self.ends(plan)}
        is_ok = fields["verdict"] is Verdict.OK
        points = fields.pop("points", [point(1), point(4)] if is_ok else [])
        halt = fields.pop("halt", None)
        made = outcome(
            plan.number,
            kind=plan.kind,
            deployment=dict(plan.deployment),
            attempt=plan.attempt,
            agreement=None,
            points=points,
            manifest={**plan.conditions, "effective_args": {UTIL: 0.9, "max_model_len": 4096}},
            **fields,
        )
        made.deployment_hash = plan.deployment_hash
        return TrialResult(made, halt=halt)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    """Make a bench of a way in which launches end, and settings."""

    def make(ends: Ends, *settings: str, space: str = SPACE) -> Bench:
        (tmp_path / "space.yaml").write_text(space)
        cfg = compose(
            [
                "engine=mock", "hardware=h100_80gb", "model=qwen7b", "load.concurrency=[1,4]",
                f"space={tmp_path / 'space.yaml'}", "sampler=random", "tracking=none",
                "budget.launches=30", "quality=none", "confirm=none", *settings,
            ],
            device_kind="cpu",
        )  # fmt: skip
        paths = StudyPaths(tmp_path / "studies", "s")
        paths.create()
        made = Bench(prepare(cfg, lambda _: None), paths, ends)

        class Launcher:
            def __init__(self, engine: object) -> None: ...

            def run(self, plan: TrialPlan, _: object) -> TrialResult:
                return made.launch(plan)

        monkeypatch.setattr("sweeper.search.loop.LocalLauncher", Launcher)
        return made

    yield make


def no_room_below(plan: TrialPlan) -> dict[str, Any]:
    """Launches with too small a share of the device have no room for a cache."""
    if float(plan.deployment.get(UTIL, 0.9)) >= ROOM_FROM:
        return {}
    return {"verdict": Verdict.CAPACITY, "learnt": {"rule": "no_kv_memory"}}


def worked(journal: list[TrialOutcome]) -> set[str]:
    return {o.deployment_hash for o in journal if o.verdict is Verdict.OK}


def test_what_one_failure_proves_is_not_launched_again(bench: Callable[..., Bench]) -> None:
    study = bench(no_room_below)
    assert "every deployment" in study.run()
    journal = study.journal
    failed = [o for o in journal if o.launched and o.verdict is Verdict.CAPACITY]
    refused = [o for o in journal if not o.launched]
    # 4 shares are too small, times 2 batch limits: each launch that fails fences off what is worse.
    assert 2 <= len(failed) < 8
    assert len(worked(journal)) == 4
    for one in refused:
        assert one.verdict is Verdict.CAPACITY and one.phase == Phase.PLAN
        teacher = one.learnt["taught_by_trial"]
        assert f"trial {teacher} had no room" in one.cause
        assert f"drop={one.learnt['bound']}" in one.remedy
        assert teacher in {o.number for o in failed}
    assert any("no longer launched (no_kv_memory-" in text for text in study.heard)


def test_refusals_spend_no_budget(bench: Callable[..., Bench]) -> None:
    study = bench(no_room_below, "budget.launches=5")
    assert study.run() == "budget of 5 launches used"
    assert len(study.launched) == 5


def test_a_study_that_was_killed_knows_its_bounds_again(bench: Callable[..., Bench]) -> None:
    study = bench(no_room_below, "budget.launches=5")
    study.run()
    failed = {
        o.number: o.deployment for o in study.journal if o.learnt.get("rule") == "no_kv_memory"
    }
    assert failed
    before = len(study.launched)
    study.setup.cfg.budget.launches = 30
    study.run()
    for plan in study.launched[before:]:
        for taught in failed.values():
            same_rest = taught.get("max_num_seqs") == plan.deployment.get("max_num_seqs")
            share = plan.deployment.get(UTIL, 0.9)
            assert not (same_rest and share <= taught.get(UTIL, 0.9))


def test_a_dropped_bound_opens_what_it_had_refused(bench: Callable[..., Bench]) -> None:
    study = bench(no_room_below)
    study.run()
    refused = {o.deployment_hash: o.learnt["bound"] for o in study.journal if not o.launched}
    assert refused
    taught = [bound.id for bound in learn(study.journal).active]
    write_dropped(study.paths.dropped_bounds_json, taught)
    first = {plan.deployment_hash for plan in study.launched}
    before = len(study.launched)
    assert "every deployment" in study.run()
    again = {plan.deployment_hash for plan in study.launched[before:]}
    assert again & set(refused)
    assert not again & first
    # Those that failed taught bounds of their own, which refuse the others anew.
    lessons = learn(study.journal, taught)
    closed = [o for o in study.journal if o.deployment_hash in set(refused) - again]
    assert all(lessons.refusing(o.deployment) for o in closed)


def test_a_running_study_notices_a_drop(bench: Callable[..., Bench]) -> None:
    study = bench(no_room_below)

    def drop_at_once(plan: TrialPlan) -> dict[str, Any]:
        taught = f"no_kv_memory-{plan.number}"
        dropped.append(taught)
        write_dropped(study.paths.dropped_bounds_json, dropped)
        return no_room_below(plan)

    dropped: list[str] = []
    study.ends = drop_at_once
    study.run()
    assert all(o.launched for o in study.journal)
    assert len(study.journal) == 12


def test_a_bound_that_a_trial_contradicts_goes(bench: Callable[..., Bench]) -> None:
    """The seed fails and all others work: once one of them is launched, the lesson is wrong."""

    def seed_fails(plan: TrialPlan) -> dict[str, Any]:
        failed = {"verdict": Verdict.CAPACITY, "learnt": {"rule": "no_kv_memory"}}
        return failed if plan.kind == "seed" else {}

    space = SPACE + "seeds: [{gpu_memory_utilization: 0.9, max_num_seqs: 8}]\n"
    study = bench(seed_fails, space=space)
    study.run()
    refused = [o for o in study.journal if not o.launched]
    assert refused
    lesson = refused[0].learnt["bound"]
    write_dropped(study.paths.dropped_bounds_json, [lesson])
    study.run()
    write_dropped(study.paths.dropped_bounds_json, [])
    lessons = learn(study.journal)
    assert [bound.id for bound, _ in lessons.contradicted] == [lesson]
    assert lessons.active == ()


def test_the_baseline_is_never_refused_and_a_seed_is_with_a_note(
    bench: Callable[..., Bench],
) -> None:
    space = SPACE + ("seeds: [{gpu_memory_utilization: 0.4}, {gpu_memory_utilization: 0.3}]\n")
    study = bench(no_room_below, "budget.launches=3", space=space)
    study.run()
    kinds = [(o.kind, o.launched) for o in study.journal[:3]]
    assert kinds == [("baseline", True), ("seed", True), ("seed", False)]
    note = next(text for text in study.heard if text.startswith("seed 2"))
    assert "trial 1 had no room" in note
    assert "bounds study=s drop=no_kv_memory-1" in note


def test_devices_that_cannot_talk_do_not_end_the_study(bench: Callable[..., Bench]) -> None:
    space = """
name: devices
parameters:
  tensor_parallel_size: {choices: [1, 2, 4], default: 1}
  max_num_seqs: {choices: [default, 8]}
seeds: [{tensor_parallel_size: 2}]
"""

    def ends(plan: TrialPlan) -> dict[str, Any]:
        if plan.deployment.get("tensor_parallel_size", 1) == 1:
            return {}
        # What a bound fences off does not end the study, though it were the machine's fault.
        return infra("nccl", "NCCL error", scope="machine")

    study = bench(ends, "hardware.device_count=8", space=space)
    assert "every deployment" in study.run()
    assert [o.attempt for o in study.journal if o.learnt.get("rule") == "nccl"] == [1, 2]
    refused = [o for o in study.journal if not o.launched]
    assert refused and {o.verdict for o in refused} == {Verdict.INFEASIBLE_CONFIG}
    assert any(text.startswith("WARNING") for text in study.heard)


def infra(rule: str = "", cause: str = "the port was lost", **learnt: Any) -> dict[str, Any]:
    told = {**({"rule": rule} if rule else {}), **learnt}
    return {
        "verdict": Verdict.INFRA, "learnt": told, "cause": cause,
        "remedy": "mend it", "evidence": "line of the log",
    }  # fmt: skip


def but_for_the_baseline(fields: Callable[[TrialPlan], dict[str, Any]]) -> Ends:
    return lambda plan: {} if plan.kind == "baseline" else fields(plan)


def test_one_fault_three_launches_in_a_row_stops_the_study_and_resuming_counts_anew(
    bench: Callable[..., Bench],
) -> None:
    study = bench(but_for_the_baseline(lambda plan: infra("port_taken")))
    with pytest.raises(StudyError) as stopped:
        study.run()
    assert [(o.number, o.attempt) for o in study.journal] == [(0, 1), (1, 1), (1, 2), (2, 1)]
    told = str(stopped.value)
    for part in ("port_taken", "line of the log", "mend it", "resume study=s", "server.log"):
        assert part in told
    with pytest.raises(StudyError):
        study.run()
    # The retry that the stop had cut off comes first.
    assert [(o.number, o.attempt) for o in study.journal[4:]] == [(2, 2), (3, 1), (3, 2)]
    study.ends = lambda plan: {}
    study.run()
    assert study.journal[-1].verdict is Verdict.OK


def test_a_success_in_between_lets_the_study_go_on(bench: Callable[..., Bench]) -> None:
    study = bench(
        but_for_the_baseline(lambda plan: infra("port_taken") if plan.attempt == 1 else {})
    )
    study.setup.cfg.budget.launches = 5
    study.run()
    assert [o.attempt for o in study.journal[1:]] == [1, 2, 1, 2]


def test_a_fault_of_the_machine_stops_with_its_retry(bench: Callable[..., Bench]) -> None:
    study = bench(but_for_the_baseline(lambda plan: infra("shared_memory", scope="machine")))
    with pytest.raises(StudyError, match="shared_memory"):
        study.run()
    assert [(o.number, o.attempt) for o in study.journal] == [(0, 1), (1, 1), (1, 2)]


def test_different_faults_stop_after_three_trials(bench: Callable[..., Bench]) -> None:
    study = bench(but_for_the_baseline(lambda plan: infra(f"rule_{plan.number}_{plan.attempt}")))
    with pytest.raises(StudyError, match="3 trials in a row"):
        study.run()
    assert len(study.launched) == 1 + 3 * 2


def test_a_fault_of_the_baseline_stops_after_its_retry(bench: Callable[..., Bench]) -> None:
    study = bench(lambda plan: infra("shared_memory", scope="machine"))
    with pytest.raises(StudyError, match="the baseline"):
        study.run()
    assert [(o.number, o.attempt) for o in study.journal] == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    "verdict",
    [v for v in Verdict if v.is_retryable],
)
def test_what_says_nothing_of_the_deployment_is_tried_exactly_once_more(
    bench: Callable[..., Bench], verdict: Verdict
) -> None:
    space = "name: two\nparameters:\n  max_num_seqs: {choices: [default, 8]}\n"
    study = bench(
        but_for_the_baseline(lambda plan: {"verdict": verdict, "cause": "odd"}), space=space
    )
    assert "every deployment" in study.run()
    odd = [o for o in study.journal if o.verdict is verdict]
    assert [o.attempt for o in odd] == [1, 2]
    study.run()
    assert len([o for o in study.journal if o.verdict is verdict]) == 2


def test_a_machine_that_is_unfit_ends_the_study_and_the_measurement_is_kept(
    bench: Callable[..., Bench],
) -> None:
    halt = Diagnosis(Verdict.INFRA, Phase.STOP, "process 12 outlived KILL", "end it by hand")
    study = bench(but_for_the_baseline(lambda plan: {"halt": halt}))
    with pytest.raises(StudyError, match="process 12 outlived KILL") as stopped:
        study.run()
    assert "end it by hand" in stopped.value.remedy
    assert "resume study=s" in stopped.value.remedy
    assert [o.verdict for o in study.journal] == [Verdict.OK, Verdict.OK]
    assert not study.paths.in_flight_json.exists()


def test_a_baseline_may_leave_the_machine_unfit_too(bench: Callable[..., Bench]) -> None:
    halt = Diagnosis(Verdict.INFRA, Phase.STOP, "memory did not come back", "reset the device")
    study = bench(lambda plan: {"halt": halt})
    with pytest.raises(StudyError, match="memory did not come back"):
        study.run()
    assert len(study.journal) == 1


def test_a_space_that_is_refused_altogether_ends(bench: Callable[..., Bench]) -> None:
    """A continuum in which everything but the baseline lies in one bound."""
    space = """
name: continuum
parameters:
  gpu_memory_utilization: {low: 0.1, high: 0.5, default: 0.5}
seeds: [{gpu_memory_utilization: 0.5}, {gpu_memory_utilization: 0.499999}]
"""
    study = bench(
        but_for_the_baseline(
            lambda plan: {"verdict": Verdict.CAPACITY, "learnt": {"rule": "no_kv_memory"}}
        ),
        space=space,
    )
    ended = study.run()
    assert "every deployment" in ended or "refused before launch" in ended
    assert len(study.launched) == 2
    assert len(study.journal) < MAX_REFUSED_IN_A_ROW


CORNER = """
name: corner
parameters:
  gpu_memory_utilization: {choices: [0.2, 0.3, 0.4, 0.9, 0.99], default: 0.9}
  max_num_seqs: {choices: [default, 256, 1024]}
"""


def as_the_mock(plan: TrialPlan) -> dict[str, Any]:
    """What the mock engine's memory model and its texts make of a deployment, without a process."""
    options = MockOptions(memory_gib=16, weights_gib=6.5, kv_kib_per_token=512)
    machine = Machine.of(plan.engine_parameters, options)
    refusal = machine.refusal()
    if refusal is None:
        speed = min(machine.kv_tokens / 1024, machine.max_num_seqs)
        return {"points": [point(1, throughput=speed), point(4, throughput=speed)]}
    log = "\n".join(failure_lines(refusal))
    return vars(diagnose_vllm(log, Phase.START, 1)) | {"points": []}


def test_bounds_save_launches_and_find_the_same_best(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failures_and_best() -> tuple[int, dict[str, Any]]:
        study = bench(as_the_mock, space=CORNER)
        shutil.rmtree(study.paths.root)
        study.paths.create()
        assert "every deployment" in study.run()
        best = max(
            (o for o in study.journal if o.verdict is Verdict.OK),
            key=lambda o: o.points[0].metrics["output_tokens_per_s"],
        )
        failed = [o for o in study.journal if o.launched and o.verdict is Verdict.CAPACITY]
        return len(failed), best.deployment

    with_bounds, best = failures_and_best()
    monkeypatch.setattr("sweeper.search.bounds.teachings.TEACHINGS", {})
    without_bounds, same_best = failures_and_best()
    assert best == same_best
    assert without_bounds == 12
    assert with_bounds <= 9


def test_a_recipe_is_planned_as_a_checkpoint_to_make(bench: Callable[..., Bench]) -> None:
    study = bench(lambda _: {}, "quantize=w8a8", "budget.launches=2")
    real = replace(study.setup.engine_facts, predicted=False)
    study.setup = replace(study.setup, engine_facts=real)
    study.run()
    plain, made = study.launched
    assert (plain.to_make, plain.weights) == (None, None)
    assert made.deployment == {"quantization": "w8a8"}
    assert made.to_make is not None
    assert made.to_make.recipe.method == "W8A8"
    assert made.weights is not None
    assert made.weights.activations == "int8"
    assert made.engine_parameters == {}
    assert made.quality_key != plain.quality_key
