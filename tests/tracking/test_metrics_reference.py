"""docs/metrics.md names every figure that is written, and none that is not."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sweeper.config.schema import HardwareConfig, SelectConfig, SloConfig, SweeperConfig
from sweeper.estimate.speed import bounds, nearness
from sweeper.load import server_metrics
from sweeper.load.records import Gauges, LevelRun
from sweeper.metrics.goodput import GoodputLimits
from sweeper.metrics.summary import summarise
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.conditions_csv import pareto_csv
from sweeper.report.summary import study_summary
from sweeper.tracking.journal import Journal
from sweeper.tracking.mlflow_metrics import BestSoFar, trial_metrics
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Phase, Verdict
from tests.estimate.facts import H100, QWEN7B
from tests.factories import open_study, outcome, quality
from tests.metrics import synthetic
from tests.pareto.again import confirmed, searched
from tests.report.traded import made

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "studies" / "example-smollm2-cpu" / "trials.jsonl"
TABLES = "Tables only"


@cache
def documented() -> dict[str, frozenset[str]]:
    """Section of the page → the names in the first column of its tables."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    return {
        section.splitlines()[0].partition(":")[0]: frozenset(
            name
            for line in section.splitlines()
            if (cell := re.match(r"\| `([^`]+)` \|", line))
            for name in expanded(cell[1])
        )
        for section in text.split("\n## ")[1:]
    }


def expanded(pattern: str) -> Iterator[str]:
    """``a_{b,c}`` → ``a_b``, ``a_c``."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ("".join(chosen) for chosen in itertools.product(*choices))


def told_by_a_server(run: LevelRun) -> LevelRun:
    """The run with every counter and gauge that a server may tell."""
    told = [v for k, v in vars(server_metrics).items() if k.isupper() and isinstance(v, str)]
    middle_s = sum(run.window_s) / 2
    return replace(
        run,
        server_before=dict.fromkeys(told, 1.0),
        server_after=dict.fromkeys(told, 3.0),
        gauges=(Gauges(middle_s, dict.fromkeys(told, 0.5)),),
        loop_lag_p95_s=0.001,
    )


def points() -> list[Point]:
    """Of each kind of load, with everything that can be known of a level."""
    closed = told_by_a_server(synthetic.level(1))
    kinds = [[closed, closed], [synthetic.by_the_clock()], [synthetic.batch()]]
    limits = GoodputLimits(e2e_ms=1e6)
    found = [Point(**vars(summarise(runs, device_count=2, limits=limits))) for runs in kinds]
    drafted = {"speculative": "ngram", "num_speculative_tokens": 3}
    light = bounds(
        drafted,
        QWEN7B,
        replace(H100, tflops_bf16=989.0),
        batch=4,
        input_tokens=64,
        output_tokens=11,
    )
    found[0].predicted = light | nearness(light, found[0].metrics)
    return found


def trials() -> list[TrialOutcome]:
    """A study of a real engine, and what it lacks: every load, quality, phase and verdict."""
    tasks = {"NAME": {"metric": "m", "value": 0.5, "se": 0.1, "n": 9, "change": 0.0}}
    judged = quality()
    judged.tasks, judged.perplexity, judged.agreement_change = tasks, {"perplexity": 7.0}, 0.0
    whole = outcome(
        1,
        points=points(),
        learnt={"slo_rate_per_s": 2.0, "model_memory_gib": 1.0},
        timings_s=dict.fromkeys([*map(str, Phase), "ready", "total", "real"], 1.0),
    )
    whole.quality = judged
    del whole.timings_s["plan"]
    whole.manifest |= {"made": made("w4a16", "llmcompressor"), "checkpoint_bytes": 2**30}
    return [*Journal(EXAMPLE).read(), whole, *open_study()]


def summaries() -> set[str]:
    """Names of what parent runs are told."""
    again = confirmed(searched(100, 150), {0: [100, 101, 99], 1: [110, 112, 109]})
    failed = [outcome(50 + i, verdict=v) for i, v in enumerate(Verdict) if v is not Verdict.OK]
    told: set[str] = set()
    for study in (again, [*again, *failed], open_study()):
        select = SelectConfig(slo=SloConfig(e2e_p95_ms=1e6))
        cfg = SweeperConfig(select=select, hardware=HardwareConfig(price_per_hour=2.0))
        frame = points_frame(study)
        told |= {*study_summary(cfg, study, frame, recommend(frame, select), "x").metrics}
    best = BestSoFar().take(outcome(0))
    assert best is not None
    return told | {best[0]}


def mlflow_names() -> set[str]:
    of_trials = {name for trial in trials() for name, _, _ in trial_metrics(trial)}
    return {name.removeprefix("invalid/") for name in of_trials} | summaries()


def test_every_figure_in_mlflow_is_on_the_page_and_none_is_made_up() -> None:
    sections = [names for section, names in documented().items() if section != TABLES]
    page = frozenset().union(*sections)
    written = mlflow_names()
    assert written - page == set(), "not on the page"
    assert page - written == set(), "on the page, and written nowhere"


def test_the_figures_of_a_level_are_those_of_the_journal() -> None:
    journalled = {name for trial in trials() for p in trial.points for name in p.metrics}
    assert journalled == documented()["Of a load level"] - {"n_requests"}


def test_every_figure_of_the_table_is_on_the_page() -> None:
    study = trials()[:-2]
    frame = points_frame(study)
    text = pareto_csv(frame, study, recommend(frame, SelectConfig()), "s")
    rows = list(csv.DictReader(io.StringIO(text)))
    page = frozenset().union(*documented().values())
    asked = ("param.", "trial", "attempt", "devices")
    conditions = re.compile(r"_(asked|version|sha256)$|^(temperature|.*_at)$")
    for name in rows[0]:
        figure = re.sub(r"\.(low|high)$", "", name)
        is_number = any(re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", row[name]) for row in rows)
        if is_number and not name.startswith(asked) and not conditions.search(name):
            assert figure in page, name


@pytest.mark.parametrize("name", ["device_seconds", "cost"])
def test_what_a_million_tokens_cost_is_explained(name: str) -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert f"`{name}_per_million_output_tokens`" in text
