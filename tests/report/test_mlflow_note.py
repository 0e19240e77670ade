"""The description of a study in MLflow."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sweeper.config.schema import SelectConfig, SweeperConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.mlflow_note import MAX_CHARACTERS, study_note, told_to_mlflow
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from tests.factories import outcome, point, study

TYPED = [("Go on:", "python -m sweeper resume study=s")]


def note(trials: list[TrialOutcome]) -> str:
    frame = points_frame(trials)
    found = recommend(frame, SelectConfig()) if any(o.verdict == "OK" for o in trials) else None
    return study_note(
        SweeperConfig(),
        "s",
        trials,
        frame,
        recommendation=found,
        ended="budget used up",
        typed=TYPED,
    )


def test_it_begins_with_the_verdict_and_has_all_that_a_reviewer_asks_for() -> None:
    text = note(study())
    found = recommend(points_frame(study()), SelectConfig())
    assert text.startswith(f"**{found.headline.split(':')[0]}")
    sections = [line for line in text.splitlines() if line.startswith("### ")]
    assert sections == [
        "### Recommended deployment",
        "### Pareto front",
        "### Conditions",
        "### How to reproduce",
    ]
    assert "Trial 1, not confirmed: enable_prefix_caching=False max_num_seqs=64" in text
    assert "| failed launches | 1 CAPACITY |" in text
    assert "- Go on: `python -m sweeper resume study=s`" in text


def test_a_front_too_long_for_mlflow_is_counted_and_the_rest_is_whole() -> None:
    points = [
        point(level, throughput=10.0 * level, e2e_p95_ms=100.0 * level) for level in range(1, 200)
    ]
    text = note([outcome(0, deployment={"max_num_seqs": 64}, points=points)])
    assert len(text) <= MAX_CHARACTERS
    assert "more in pareto.csv" in text
    assert text.rstrip().endswith("(outcome.json).")


def test_words_from_outside_are_no_markup() -> None:
    found = study()
    found[1].deployment["flag.x"] = "<script>alert(1)</script>|[a](http://b)"
    text = note(found)
    assert "script" in text
    assert not re.search(r"(?<!\\)(<script|\]\(http)", text)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"name": "simulate", "predicted": True}, "(predicted)"),
        ({"name": "replay", "distribution": "table"}, "figures are replayed, not measured here"),
        ({"name": "vllm"}, ""),
    ],
)
def test_figures_that_were_not_measured_say_so_in_the_first_line(
    engine: dict[str, Any], words: str
) -> None:
    trials = study()
    for one in trials:
        one.manifest["engine"] = engine
    first = note(trials).splitlines()[0]
    assert words in first
    if not words:
        assert "predicted" not in first and "replayed" not in first


def test_a_study_without_a_feasible_trial_says_where_its_causes_are() -> None:
    text = note(study()[3:])
    assert text.startswith("**No feasible operating point.**")


def test_deployment_files_are_attached_where_there_is_a_recommendation(tmp_path: Any) -> None:
    paths, frame = StudyPaths(tmp_path, "s"), points_frame(study())
    found = recommend(frame, SelectConfig())
    cfg = SweeperConfig()
    told = told_to_mlflow(cfg, paths, study(), frame, recommendation=found, ended="x")
    assert {path.name for path in told.artifacts} == {
        "report.html",
        "report.md",
        "pareto.csv",
        "study.yaml",
        "recommended",
    }
    without = told_to_mlflow(cfg, paths, study(), frame, recommendation=None, ended="x")
    assert paths.recommended_dir not in without.artifacts
    assert told.note is not None and told.note.startswith("**Trial")
