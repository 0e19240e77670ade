from __future__ import annotations

from itertools import islice
from pathlib import Path

from sweeper.config.schema import (
    LoadConfig,
    ObjectiveConfig,
    SamplerConfig,
    SloConfig,
    SpaceConfig,
)
from sweeper.search.bounds.bound import Bound, Rest
from sweeper.search.bounds.learn import Lessons
from sweeper.search.candidates import Candidates
from sweeper.search.in_flight import InFlight
from sweeper.search.objective import Objective
from sweeper.search.proposals import Proposals
from sweeper.space.canonical import canonical, deployment_hash
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import outcome

SPACE = parse_space(
    SpaceConfig(
        name="s",
        parameters={"max_num_seqs": {"choices": [4, 16, 64], "default": 16}},
        seeds=[{"max_num_seqs": 4}],
    )
)
EVERYTHING = Bound(
    id="all-1", rule="all", trial=1, verdict="CAPACITY", told="fell over", remedy="",
    limits=(), rest=Rest.ANY, teacher={},
)  # fmt: skip


def candidates(
    path: Path, known: dict[str, TrialOutcome], lessons: Lessons | None = None
) -> Candidates:
    objective = Objective(ObjectiveConfig(kind="point"), SloConfig(), LoadConfig(), False)
    proposals = Proposals(path, SPACE, SamplerConfig(kind="random"), objective)
    made = lessons or Lessons()
    return Candidates(SPACE, SPACE, proposals, lambda _: [], lambda: known, lessons=lambda: made)


def test_bounds_refuse_seeds_and_proposals_but_never_the_baseline(tmp_path: Path) -> None:
    study = candidates(tmp_path / "o", {}, Lessons(active=(EVERYTHING,)))
    first = list(islice(study.each(), 3))
    assert [(one.kind, one.bound) for one in first] == [
        ("baseline", None),
        ("seed", EVERYTHING),
        ("search", EVERYTHING),
    ]


def test_a_sampler_is_not_helped_out_with_what_is_refused(tmp_path: Path) -> None:
    known: dict[str, TrialOutcome] = {}
    study = candidates(tmp_path / "o", known, Lessons(active=(EVERYTHING,)))
    for number, one in enumerate(study.each()):
        known[one.deployment_hash] = outcome(
            number, deployment=one.deployment, verdict=Verdict.CAPACITY, launched=False
        )
    assert len(known) <= 3


def of(number: int, seqs: int, verdict: Verdict, attempt: int = 1) -> tuple[str, TrialOutcome]:
    deployment = canonical(SPACE, {"max_num_seqs": seqs})
    digest = deployment_hash(deployment)
    made = outcome(number, deployment=deployment, verdict=verdict, attempt=attempt)
    made.deployment_hash = digest
    return digest, made


def test_a_retry_that_an_earlier_run_owed_comes_before_anything_new(tmp_path: Path) -> None:
    known = dict([of(0, 16, Verdict.OK), of(1, 64, Verdict.INFRA)])
    first = next(candidates(tmp_path / "o", known).each())
    assert (first.number, first.attempt, first.kind) == (1, 2, "search")
    known = dict([of(0, 16, Verdict.OK), of(1, 64, Verdict.INFRA, attempt=2)])
    first = next(candidates(tmp_path / "o", known).each())
    assert (first.number, first.kind) == (None, "seed")
    known = dict([of(0, 16, Verdict.OK), of(1, 64, Verdict.CAPACITY)])
    first = next(candidates(tmp_path / "o", known).each())
    assert (first.number, first.kind) == (None, "seed")


def test_what_was_in_mid_air_comes_first(tmp_path: Path) -> None:
    left = InFlight(7, 2, "search", {"max_num_seqs": 64})
    first = next(candidates(tmp_path / "o", {}).each(left))
    assert (first.number, first.attempt, first.deployment) == (7, 2, {"max_num_seqs": 64})
