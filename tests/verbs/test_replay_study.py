"""Studies of a table: what is derived from it, what they find of it, and interrupted ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import SweeperConfig
from sweeper.engine.protocol import Tabled
from sweeper.engine.registry import create
from sweeper.errors import ConfigError
from sweeper.pareto.points import points_frame
from sweeper.report.text import front_csv, front_frame
from sweeper.search.loop import StudyRun
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Event, Note, TrialEnded, TrialStarted
from sweeper.verbs.running import prepare
from sweeper.verbs.table_told import against_table
from sweeper.verbs.tabled import filled
from sweeper.verdicts import Verdict
from tests.engine.replay.tables import (
    csv_row,
    deployment_line,
    metrics,
    sparse_table,
    write_csv,
    write_lines,
)
from tests.factories import outcome, point

QUIET = ["tracking=none", "sampler=random", "stop=none"]


def configured(table: Path, folder: Path, *overrides: str) -> SweeperConfig:
    given = ["engine=replay", f"engine.table={table}", f"studies_dir={folder}", *QUIET]
    return filled(compose([*given, *overrides]))


def run(cfg: SweeperConfig, listener: Callable[[Event], None] = lambda _: None) -> list[Any]:
    """A study up to the end of its search, in this process."""
    setup = prepare(cfg, listener)
    paths = StudyPaths(Path(cfg.studies_dir), str(cfg.study))
    paths.create()
    with StudyLock(paths.lock):
        journal = Journal(paths.trials_jsonl, reserve=paths.reserve)
        tracker = MlflowTracker(cfg, paths, {}, paths.name)
        StudyRun(setup, paths, journal, tracker, listener).run()
        return journal.read()


# What is derived


def test_space_ladder_name_and_lengths_are_the_tables(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "rows.csv", [csv_row(8), csv_row(32), csv_row(8, tp_size=4)])
    cfg = configured(table, tmp_path / "studies")
    assert cfg.study == "replay-rows-Model-7B-h200_sxm-1000x101-vllm"
    assert cfg.space.parameters == {
        "tensor_parallel_size": {"choices": [2, 4], "required": True, "default": 2}
    }
    assert (cfg.load.kind, cfg.load.concurrency) == ("closed", [8, 32])
    assert (cfg.workload.input_tokens, cfg.workload.output_tokens) == (1000, 101)
    assert (cfg.hardware.name, cfg.hardware.device_count) == ("h200_sxm", 4)
    # It has means alone, so that these are what latency means here.
    assert cfg.objective.latency_metric == "e2e_mean_ms"
    assert cfg.quality.kind == "none"


def test_what_the_user_gives_stays(tmp_path: Path) -> None:
    table = sparse_table(tmp_path / "t.jsonl")
    cfg = configured(
        table,
        tmp_path / "studies",
        "study=mine",
        "space.parameters.max_num_seqs=[1,2]",
        "load.concurrency=[8]",
        "hardware=h200",
    )
    assert cfg.study == "mine"
    assert list(cfg.space.parameters) == ["max_num_seqs"]
    assert cfg.load.concurrency == [8]
    assert cfg.hardware.name == "h200"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("select.slo.ttft_p95_ms=100", "the table has no ttft_p95_ms"),
        ("objective.metrics=[+requests_per_s]", "the table has no requests_per_s"),
        ("engine.args.max_model_len=8", "engine.args.max_model_len"),
    ],
)
def test_what_the_table_cannot_answer_is_refused(tmp_path: Path, override: str, said: str) -> None:
    table = sparse_table(tmp_path / "t.jsonl")
    with pytest.raises(ConfigError, match=said):
        configured(table, tmp_path, "objective=metrics", *_with_metric(override))


def _with_metric(override: str) -> list[str]:
    metric = "objective.metrics=[+output_tokens_per_s]"
    return [override] if override.startswith("objective") else [metric, override]


def test_no_table_and_a_table_for_another_engine_are_refused() -> None:
    with pytest.raises(ConfigError, match="names none"):
        compose(["engine=replay"])
    with pytest.raises(ConfigError, match="launches deployments"):
        compose(["engine=mock", "model=qwen7b", "hardware=h200", "engine.table=x.csv"])


# What is found


@pytest.mark.parametrize("sampler", ["random", "tpe", "grid", "nsgaii"])
def test_only_the_tables_deployments_are_proposed_and_all_of_them(
    tmp_path: Path, sampler: str
) -> None:
    cfg = configured(
        sparse_table(tmp_path / "t.jsonl"),
        tmp_path / "studies",
        f"sampler={sampler}",
        "budget.launches=50",
    )
    told: list[Event] = []
    outcomes = run(cfg, told.append)
    assert len(outcomes) == 12
    assert all(one.launched for one in outcomes)
    assert [one.verdict for one in outcomes].count(Verdict.CAPACITY) == 1
    assert outcomes[0].kind == "baseline"
    notes = [event.text for event in told if isinstance(event, Note)]
    assert any(
        "replayed from" in note and "12 deployments (1 that failed)" in note for note in notes
    )


def test_minutes_are_those_of_the_table(tmp_path: Path) -> None:
    cfg = configured(
        sparse_table(tmp_path / "t.jsonl"),
        tmp_path / "studies",
        "budget.launches=null",
        "budget.minutes=3",
    )
    outcomes = run(cfg)
    # 50 s a launch (30 s one that fails): the fourth is the last to begin within three minutes.
    assert len(outcomes) in {4, 5}
    spent_s = [one.timings_s["total"] for one in outcomes]
    assert set(spent_s) <= {50.0, 30.0}
    assert sum(spent_s) >= 180 > sum(spent_s[:-1])


def test_manifest_and_devices_tell_a_replay(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "s.csv", [csv_row(8), csv_row(8, tp_size=4)])
    outcomes = run(configured(table, tmp_path / "studies"))
    assert [one.manifest["devices"] for one in outcomes] == [2, 4]
    assert outcomes[0].manifest["engine"]["details"]["source"].startswith("replayed from s.csv")
    assert outcomes[0].manifest["measured"] is True


def test_quality_of_the_table_is_searched_for_too(tmp_path: Path) -> None:
    score = {
        "agreement": 0.9,
        "agreement_se": 0.01,
        "loglik_change_nats": -0.1,
        "loglik_change_se_nats": 0.01,
        "tokens": 100,
    }
    lines = [deployment_line({"max_num_seqs": n}, quality=score) for n in (4, 8)]
    table = write_lines(tmp_path / "t.jsonl", lines)
    cfg = configured(table, tmp_path / "a")
    assert cfg.quality.kind == "agreement"
    quality = run(cfg)[0].quality
    assert quality is not None and quality.agreement == 0.9
    assert len(run(cfg)) == 2, "a study whose quality the table told goes on without a reference"
    without = configured(table, tmp_path / "b", "engine.options.quality=false")
    assert without.quality.kind == "none"


def test_a_journal_replayed_is_the_journal(tmp_path: Path) -> None:
    """What a study measured, searched again in full, is measured the same."""
    folder = tmp_path / "first"
    folder.mkdir()
    trials = [outcome(0, points=[point(1, throughput=10), point(8, throughput=50)])]
    trials += [
        outcome(
            n, kind="search", deployment={"max_num_seqs": 2**n}, points=[point(8, throughput=n)]
        )
        for n in (3, 4)
    ]
    write_lines(folder / "trials.jsonl", [one.to_dict() for one in trials])
    again = run(configured(folder, tmp_path / "studies"))
    assert {json.dumps(one.deployment): _figures(one) for one in again} == {
        json.dumps(one.deployment): _figures(one) for one in trials
    }


def _figures(one: TrialOutcome) -> list[dict[str, float]]:
    return [dict(each.metrics) for each in one.valid_points]


def test_the_end_says_what_was_missed(tmp_path: Path) -> None:
    lines = [
        deployment_line({"max_num_seqs": 256}, 100.0),
        deployment_line({"max_num_seqs": 2}, 200.0),
        {
            "deployment": {"max_num_seqs": 512},
            "levels": [{"concurrency": 8, "metrics": metrics(9000.0, 8000.0)}],
        },
    ]
    path = write_lines(tmp_path / "t.jsonl", [{"table": {"predicted": False}}, *lines])
    cfg = configured(path, tmp_path / "studies", "budget.launches=1")
    engine = create(cfg.engine, cache_dir=tmp_path)
    assert isinstance(engine, Tabled)
    first = run(cfg)
    said = against_table(first, engine.table, cfg.objective, cfg.select.slo)
    assert "1 launches of 3 deployments" in said
    assert "91.1 % below the best of the table, 9,000 at concurrency 8" in said.replace("%", " %")
    cfg.select.slo.e2e_p95_ms = 2000.0
    promised = against_table(first, engine.table, cfg.objective, cfg.select.slo)
    assert "keeps the promise: 800, 50.0% below" in promised
    cfg.budget.launches = 9
    whole = against_table(run(cfg), engine.table, cfg.objective, cfg.select.slo)
    assert "found all of its hypervolume" in whole and "the best of the table" in whole


# Interrupted


class Interrupt:
    """Ends a study at a moment: its launches are announced, and told when they are journalled."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, event: Event) -> None:
        if isinstance(event, TrialStarted | TrialEnded):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1


def front(outcomes: list[TrialOutcome]) -> str:
    return front_csv(front_frame(points_frame(outcomes)))


@pytest.mark.parametrize(("sampler", "launches"), [("random", 5), ("tpe", 5), ("gp", 3)])
def test_interrupted_at_every_step_a_study_ends_as_it_would_have(
    tmp_path: Path, sampler: str, launches: int
) -> None:
    table = sparse_table(tmp_path / "t.jsonl", seqs=8)
    asked = [f"sampler={sampler}", "sampler.seed=3", "sampler.startup_trials=2"]
    asked += [f"budget.launches={launches}"]
    base = configured(table, tmp_path / "whole", *asked)
    whole = run(base)
    assert len(whole) == launches
    for step in range(2 * launches):
        cfg = replace(base, studies_dir=str(tmp_path / f"cut-{step}"))
        with pytest.raises(KeyboardInterrupt):
            run(cfg, Interrupt(step))
        resumed = run(cfg)
        assert [one.deployment for one in resumed] == [one.deployment for one in whole], step
        assert front(resumed) == front(whole), step
