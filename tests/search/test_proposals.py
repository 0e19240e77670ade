"""Ask and tell over a real Optuna journal, and what an interrupted run leaves in it."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial

from sweeper.config.schema import (
    LoadConfig,
    ObjectiveConfig,
    SamplerConfig,
    SloConfig,
    SpaceConfig,
)
from sweeper.search.candidates import Candidates
from sweeper.search.objective import Objective
from sweeper.search.proposals import Proposals
from sweeper.space.canonical import baseline
from sweeper.space.model import Space
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome as made
from tests.factories import point

SPACE = parse_space(
    SpaceConfig(
        name="s",
        parameters={
            "max_num_seqs": {"choices": [4, 16, 64], "default": 16},
            "quantization": {"choices": ["none", "fp8_per_tensor"]},
            "speculative": {"choices": ["none", "ngram"]},
            "num_speculative_tokens": {
                "choices": [2, 4],
                "default": 2,
                "when": {"speculative": ["ngram"]},
            },
        },
        seeds=[{"speculative": "ngram"}],
    )
)
# none|fp8, 4|16|64 sequences, no speculation or 2|4 tokens
SIZE = 2 * 3 * 3


def objective() -> Objective:
    return Objective(
        ObjectiveConfig(kind="point"), SloConfig(), LoadConfig(concurrency=[1, 8]), True
    )


def proposals(path: Path, kind: str = "tpe", space: Space = SPACE) -> Proposals:
    return Proposals(path, space, SamplerConfig(kind=kind), objective())


def measured(number: int, deployment: dict[str, object], digest: str) -> TrialOutcome:
    """A deployment's made-up result: deterministic, so that twins agree."""
    speed = 100.0 + len(deployment) * 10
    result = made(number, deployment=deployment, points=[point(8, throughput=speed)])
    result.deployment_hash = digest
    return result


@pytest.mark.parametrize("kind", ["tpe", "random", "nsgaii", "qmc", "grid"])
def test_every_sampler_tries_the_whole_space_once_and_then_ends(tmp_path: Path, kind: str) -> None:
    known: dict[str, TrialOutcome] = {}
    study = proposals(tmp_path / "optuna.journal", kind)
    candidates = Candidates(SPACE, SPACE, study, lambda _: [], lambda: known)
    kinds = []
    for number, candidate in enumerate(candidates.each()):
        assert candidate.deployment_hash not in known
        assert candidate.proposal is not None
        kinds.append(candidate.kind)
        known[candidate.deployment_hash] = measured(
            number, candidate.deployment, candidate.deployment_hash
        )
        study.assign(candidate.proposal, number)
        study.tell(candidate.proposal, known[candidate.deployment_hash])
    assert len(known) == SIZE
    assert kinds[:3] == ["baseline", "seed", "search"]


def test_asking_for_a_given_deployment_gives_it(tmp_path: Path) -> None:
    study = proposals(tmp_path / "optuna.journal", "gp")
    raw = {**baseline(SPACE), "max_num_seqs": 64, "speculative": "ngram"}
    proposal = study.ask(raw)
    # The engine has no number of speculative tokens of its own, so it is always said.
    assert proposal.deployment == {
        "max_num_seqs": 64,
        "speculative": "ngram",
        "num_speculative_tokens": 2,
    }


def test_a_study_is_told_again_what_it_knew(tmp_path: Path) -> None:
    """Optuna's file is derived: however it was left, each start tells it the journal anew."""
    path = tmp_path / "optuna.journal"
    first = proposals(path)
    left_running = first.ask()
    first.assign(left_running, 5)
    with path.open("a") as file:
        file.write('{"op_code": 4, "worker')
    kept = measured(0, {"max_num_seqs": 64}, "h")
    refused = made(1, verdict=Verdict.INFEASIBLE_CONFIG, launched=False)
    crashed = made(2, deployment={"max_num_seqs": 4}, verdict=Verdict.CRASH_UNDER_LOAD)
    failed = made(3, deployment={"quantization": "fp8_per_tensor"}, verdict=Verdict.INFRA)
    Proposals(path, SPACE, SamplerConfig(kind="tpe"), objective(), [kept, refused, crashed, failed])

    trials = stored(path)
    assert [trial.user_attrs["number"] for trial in trials] == [0, 1, 2, 3]
    assert [trial.state.name for trial in trials] == ["COMPLETE", "PRUNED", "PRUNED", "FAIL"]
    assert trials[0].values[:2] == [110.0, 1000.0]
    assert trials[0].constraints == {"feasible": 0.0}
    assert trials[2].constraints["feasible"] > 0


def test_an_outcome_outside_the_searched_space_is_kept_as_refused(tmp_path: Path) -> None:
    """Rules that have learnt more take choices out; what was tried before stays known."""
    path = tmp_path / "optuna.journal"
    outside = measured(0, {"max_num_seqs": 999}, "h")
    Proposals(path, SPACE, SamplerConfig(kind="tpe"), objective(), [outside])
    assert [trial.state.name for trial in stored(path)] == ["PRUNED"]


def stored(path: Path) -> list[FrozenTrial]:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    study = optuna.load_study(
        study_name="sweeper", storage=JournalStorage(JournalFileBackend(str(path)))
    )
    return study.get_trials()


def test_refused_deployments_cost_nothing_and_do_not_stop_the_search(tmp_path: Path) -> None:
    """Everything with fp8 is refused: it is yielded once each, and the rest is still found."""
    from sweeper.estimate.violation import Violation

    known: dict[str, TrialOutcome] = {}
    study = proposals(tmp_path / "optuna.journal", "tpe")

    def check(deployment: object) -> list[Violation]:
        bad = "quantization" in dict(deployment)  # type: ignore[call-overload]
        return [Violation("r", "no fp8", "leave it out", ("quantization",))] if bad else []

    candidates = Candidates(SPACE, SPACE, study, check, lambda: known)
    launched = 0
    for number, candidate in enumerate(candidates.each()):
        verdict = Verdict.INFEASIBLE_CONFIG if candidate.violations else Verdict.OK
        launched += not candidate.violations
        result = measured(number, candidate.deployment, candidate.deployment_hash)
        result.verdict = verdict
        known[candidate.deployment_hash] = result
        if candidate.proposal is None:
            study.note_refused(result)
        else:
            study.assign(candidate.proposal, number)
            study.tell(candidate.proposal, result)
    assert launched == SIZE // 2
