"""The comparison of searches on a problem small enough to know: does it count what it says?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.efficiency import cpu_table
from benchmarks.efficiency.asks import ask_of, asks_of, key_of, table_lines, whole
from benchmarks.efficiency.figures import (
    LAUNCHES,
    TIME,
    Cell,
    Spread,
    cells,
    is_loss,
    needed,
    ratio,
    spread,
)
from benchmarks.efficiency.known import Known, recorded, simulated
from benchmarks.efficiency.make_tables import write_lines
from benchmarks.efficiency.policies import OURS, POLICIES, RANDOM, Policy
from benchmarks.efficiency.priors import NOISY, SHUFFLED, TRUE, TablePrior
from benchmarks.efficiency.problem_set import (
    Source,
    load,
    measured_sources,
    silicon_sources,
    simulated_sources,
)
from benchmarks.efficiency.problems import (
    CHAT,
    LLAMA_70B,
    PROBLEMS,
    QWEN3_8B,
    Problem,
    space_of,
)
from benchmarks.efficiency.runs import Job, Record, jobs, read, run_all
from benchmarks.efficiency.show import by_problem, headline, losses, summary
from benchmarks.efficiency.study import FRACTIONS, FRONTIER, SLO, best_of, run
from sweeper.config.compose import compose
from sweeper.config.schema import SloConfig
from sweeper.engine.replay.table import Table
from sweeper.search.loop import StudyRun
from sweeper.space.canonical import baseline, canonical, enumerate_canonical, size
from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from sweeper.verbs.running import prepare
from sweeper.verbs.tabled import filled

Deployment = dict[str, str | int]
ROOT = Path(__file__).resolve().parents[2]

SEQS, BATCHED = (16, 64, 256), (1024, 8192)
SPACE = {
    "name": "tiny",
    "fixed": {},
    "parameters": {
        "quantization": {"choices": ["none", "fp8_per_tensor"]},
        "max_num_seqs": {"choices": list(SEQS), "default": 256},
        "max_num_batched_tokens": {"choices": list(BATCHED), "default": 8192},
    },
    "seeds": [],
}


def deployments() -> list[Deployment]:
    return [
        ({} if quantization == "none" else {"quantization": quantization})
        | ({} if seqs == 256 else {"max_num_seqs": seqs})
        | ({} if batched == 8192 else {"max_num_batched_tokens": batched})
        for quantization in ("none", "fp8_per_tensor")
        for seqs in SEQS
        for batched in BATCHED
    ]


def line(
    deployment: Deployment, factor: float = 1.0, *, all_fit: bool = False
) -> dict[str, object]:
    """Faster with fp8 and with more sequences; one does not fit."""
    if deployment == {"max_num_batched_tokens": 1024} and not all_fit:
        return {"deployment": deployment, "verdict": "CAPACITY", "levels": [], "virtual_s": 30.0}
    speed = 1.5 if "quantization" in deployment else 1.0
    speed *= 1 + int(deployment.get("max_num_seqs", 256)) / 1000
    levels = [
        {
            "concurrency": streams,
            "metrics": {
                "output_tokens_per_s_per_gpu": 100.0 * streams**0.8 * speed * factor,
                "e2e_p95_ms": 1000.0 * streams**0.2 / speed,
            },
        }
        for streams in (4, 32)
    ]
    return {"deployment": deployment, "verdict": "OK", "levels": levels, "virtual_s": 60.0}


@pytest.fixture
def known(tmp_path: Path) -> Known:
    return make(tmp_path / "tiny.jsonl")


def make(path: Path, factor: float = 1.0, *, all_fit: bool = False) -> Known:
    head: dict[str, object] = {"table": {"space": SPACE, "source": "tiny"}}
    lines = [head, *(line(one, factor, all_fit=all_fit) for one in deployments())]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return recorded(path.stem, Table.load(path), SloConfig(e2e_p95_ms=1100.0))


def record(policy: str, at: Sequence[int | None], seed: int = 0, problem: str = "p") -> Record:
    launches = {str(fraction): one for fraction, one in zip(FRACTIONS, at, strict=True)}
    seconds = {key: None if one is None else 60.0 * one for key, one in launches.items()}
    return Record(problem, policy, seed, FRONTIER, 40, launches, seconds, 40, 2400.0, 0, 0.9)


@pytest.mark.parametrize("policy", [one for one in POLICIES if one.prior == "none"])
@pytest.mark.parametrize("kind", [FRONTIER, SLO])
def test_every_policy_finds_the_best_of_a_space_it_may_exhaust(
    known: Known, policy: Policy, kind: str
) -> None:
    result = run(known, policy, seed=3, kind=kind, most=40)
    assert result.share == pytest.approx(1.0)
    last = result.reached[0.99]
    assert last.launches is not None
    assert last.launches == result.launches <= len(deployments())
    assert last.virtual_s == 60.0 * (result.launches - result.failed) + 30.0 * result.failed


def test_the_same_seed_gives_the_same_study(known: Known) -> None:
    first, again = (run(known, RANDOM, seed=5, kind=FRONTIER, most=40) for _ in range(2))
    assert first == again


def test_a_study_ends_at_its_most_launches(known: Known) -> None:
    result = run(known, RANDOM, seed=1, kind=FRONTIER, most=1)
    assert result.launches == 1
    assert result.reached[0.99].launches is None


@pytest.mark.parametrize("policy", [OURS, RANDOM])
def test_it_launches_what_the_product_launches(tmp_path: Path, policy: Policy) -> None:
    known = make(tmp_path / "tiny.jsonl", all_fit=True)
    launches = 7
    cfg = filled(
        compose(
            [
                "engine=replay",
                f"engine.table={known.table.path}",
                f"studies_dir={tmp_path / 'studies'}",
                f"sampler.kind={policy.sampler}",
                "sampler.seed=3",
                f"budget.launches={launches}",
                "tracking=none",
                "stop=none",
            ]
        )
    )
    paths = StudyPaths(Path(cfg.studies_dir), str(cfg.study))
    paths.create()
    journal = Journal(paths.trials_jsonl, reserve=paths.reserve)
    tracker = MlflowTracker(cfg, paths, {}, paths.name)
    StudyRun(prepare(cfg, ignore), paths, journal, tracker, ignore).run()
    ours = [outcome.deployment for outcome in best_of(known, policy, 3, FRONTIER, launches)]
    assert ours == [outcome.deployment for outcome in journal.read()]


def ignore(event: object) -> None:
    pass


def test_a_true_prior_finds_the_best_at_once(known: Known, tmp_path: Path) -> None:
    policy = next(one for one in POLICIES if one.prior == TRUE)
    other = make(tmp_path / "other.jsonl", factor=0.7)
    result = run(known, policy, seed=1, kind=FRONTIER, most=40, other=other)
    assert result.reached[0.99].launches == 2  # the baseline, then the prior's first seed


def test_priors_are_distorted_as_they_say(known: Known) -> None:
    true, noisy, shuffled = (
        TablePrior(known, how, seed=4).predict(deployments()) for how in (TRUE, NOISY, SHUFFLED)
    )
    assert true[0] is not None
    assert true[0].points[0].metrics == dict(known.table.rows[0].levels[0].metrics)
    misfit = deployments().index({"max_num_batched_tokens": 1024})
    assert true[misfit] is None, "it does not fit there either"
    assert noisy != true
    told = [[repr(one) for one in known if one is not None] for known in (shuffled, true)]
    assert sorted(told[0]) == sorted(told[1])
    assert shuffled != true


def test_the_grid_walks_batched_tokens_inside_sequences() -> None:
    grid = next(policy for policy in POLICIES if policy.grid)
    space = space_of(QWEN3_8B)
    first = (enumerate_canonical(grid.order(space), 10_000) or [])[:5]
    whole_ones = [whole(space, one) for one in first]
    assert [one["max_num_batched_tokens"] for one in whole_ones] == [1024, 2048, 8192, 16384, 1024]
    assert [one["max_num_seqs"] for one in whole_ones] == [16, 16, 16, 16, 64]
    assert {one["quantization"] for one in whole_ones} == {"none"}


def test_problems_are_as_large_and_as_many_as_promised() -> None:
    assert len(PROBLEMS) >= 8
    for problem in PROBLEMS:
        assert (size(space_of(problem.model)) or 0) >= 2000
    assert len({(p.model.name, p.hardware, p.workload.name) for p in PROBLEMS}) == len(PROBLEMS)


def test_what_is_equal_by_construction_is_asked_once() -> None:
    problem = Problem(replace(QWEN3_8B, tensor_parallel=(1,)), "h200", CHAT)
    space = space_of(problem.model)
    base = whole(space, canonical(space, baseline(space)))
    few = {**base, "max_num_seqs": 64}
    assert key_of(ask_of(problem, base, 32)) == key_of(ask_of(problem, few, 32))
    assert key_of(ask_of(problem, base, 256)) != key_of(ask_of(problem, few, 256))
    asks = asks_of(problem)
    assert len({key_of({**ask, "shares": None}) for ask in asks}) == len(asks) < size(space)  # type: ignore[operator]


def test_a_table_has_a_line_for_each_deployment_and_says_why_one_failed() -> None:
    workload = replace(CHAT, concurrency=(32,))
    problem = Problem(replace(LLAMA_70B, tensor_parallel=(1, 4)), "h100_80gb", workload)
    figures = {"output_tokens_per_s_per_gpu": 10.0, "e2e_p95_ms": 50.0}
    fits = {"metrics": figures, "duration_s": 8.0, "cache_tokens": 1}
    misfit = {"refused": "too large", "needed_gib": 141.0, "available_gib": 80.0}
    answers = {}
    for ask in asks_of(problem):
        shares = ask.pop("shares")
        said = misfit if ask["tensor"] == 1 else fits
        answers[key_of(ask)] = {str(share): said for share in shares}
    head, *lines = table_lines(problem, answers)
    assert head["table"]["source"] == "predicted"
    assert len(lines) == size(space_of(problem.model))
    alone = next(one for one in lines if one["deployment"].get("tensor_parallel_size") == 1)
    assert alone["verdict"] == "CAPACITY"
    assert alone["learnt"] == {"needed_gib": 141.0, "available_gib": 80.0}
    default = next(one for one in lines if one["deployment"] == {})
    # process, 141.2 GB at 2 GB/s, compiling, 32 graphs, one level of 8 s and a quarter of warm-up
    assert default["virtual_s"] == pytest.approx(20 + 70.6 + 25 + 3.2 + 10)


def test_the_stored_tables_are_problems() -> None:
    sources = simulated_sources()
    if not sources:
        pytest.skip("no tables yet")
    found = simulated(min(sources, key=lambda one: one.path.stat().st_size).path)
    assert found.best_volume >= found.best_deployment > 0
    assert found.best_under_slo is not None
    assert len(found.table.rows) == size(found.space)


def test_medians_of_studies_that_did_not_come_so_far() -> None:
    records = [record("x", at) for at in ([3, 5, None], [4, 9, None], [6, 7, 20])]
    assert needed(records, 0.9, "launches") == [3, 4, 6]
    assert spread(needed(records, 0.95, "launches")).at == 7
    assert spread(needed(records, 0.99, "launches")).at == float("inf")


def test_a_ratio_is_of_medians() -> None:
    assert ratio([2.0] * 9, [8.0] * 9) == Spread(0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("own", "random", "expected"),
    [(10, None, 10 / 40), (None, 8, float("inf")), (None, None, None)],
)
def test_random_that_never_came_so_far_counts_with_all_it_spent(
    own: int | None, random: int | None, expected: float | None
) -> None:
    records = [record(OURS.name, [own] * 3), record(RANDOM.name, [random] * 3)]
    for unit in (LAUNCHES, TIME):
        found = cells(records, FRONTIER, 0.95, unit)["p", OURS.name].ratio
        assert (None if found is None else found.at) == expected


def test_a_loss_is_worse_by_more_than_noise() -> None:
    sure = [record(OURS.name, [9, 9, 9], seed) for seed in range(9)]
    control = [record(RANDOM.name, [3, 9, 18], seed) for seed in range(9)]
    at = {fraction: cells([*sure, *control], FRONTIER, fraction) for fraction in FRACTIONS}
    assert [is_loss(at[fraction]["p", OURS.name]) for fraction in FRACTIONS] == [True, False, False]
    assert losses([*sure, *control]) == [
        "p, frontier 90%, ours, no prior: 3.00 times random's launches [3.00, 3.00]"
    ]
    assert headline([*sure, *control], 0.99).endswith("1 problems: 0.50")
    assert "**L**" in by_problem([*sure, *control], FRONTIER, 0.9)
    assert "1 of 3" in summary([*sure, *control])


def test_a_cell_without_random_is_no_loss() -> None:
    assert not is_loss(Cell(Spread(1, 1, 1), None))


def test_a_stopped_run_goes_on(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Job] = []

    def run_one(job: Job) -> Record:
        ran.append(job)
        return record(job.policy, [1, 2, 3], job.seed, job.source.name)

    monkeypatch.setattr("benchmarks.efficiency.runs.run_one", run_one)
    source = Source("study", "p", tmp_path)
    wanted = jobs([source], [OURS, RANDOM], seeds=2, most=40)
    assert {job.kind for job in wanted} == {FRONTIER}, "a study's promise is not known"
    results = tmp_path / "results.jsonl"
    run_all(wanted[:1], results, 1, lambda text: None)
    with results.open("a") as file:
        file.write('{"problem": "torn')
    results.write_text(results.read_text() + "\n")
    run_all(wanted, results, 1, lambda text: None)
    assert len(ran) == len(wanted) == 4
    assert len(read(results)) == 4


def test_silicon_that_is_not_there_is_said(tmp_path: Path) -> None:
    for shared in (None, tmp_path):
        sources, notes = silicon_sources(shared)
        assert sources == []
        assert "silicon is left out" in notes[0]


def test_the_study_of_a_real_engine_is_exhaustive() -> None:
    assert cpu_table.deployments() == 72
    cfg = compose(list(cpu_table.OVERRIDES))
    assert len(cfg.load.concurrency) == 3
    assert (cfg.sampler.kind, cfg.confirm.repeats, cfg.stop.early) == ("grid", 0, False)


def test_a_study_of_a_real_engine_is_kept_as_it_was_measured(tmp_path: Path) -> None:
    study = ROOT / "tests" / "data" / "study-of-0.1"
    path = tmp_path / "cpu_example.jsonl.gz"
    write_lines(cpu_table.kept_lines(study), path)
    before, after = Table.load(study), Table.load(path)
    assert not after.is_predicted
    assert after.contents.engine == before.contents.engine
    launched = {str(row.deployment): row for row in before.rows if row.levels}
    assert {str(row.deployment) for row in after.rows} >= set(launched)
    for row in after.rows:
        if row.levels:
            own = launched[str(row.deployment)]
            assert (row.virtual_s, len(row.levels)) == (own.virtual_s, len(own.levels))
            assert row.levels[0].metrics.items() <= own.levels[0].metrics.items()


def test_the_measured_table_has_every_deployment_of_its_space() -> None:
    (source,) = measured_sources()
    known = load(source)
    assert size(known.space) == len(known.table.rows) >= 32
    assert {len(row.levels) for row in known.table.rows} == {3}
