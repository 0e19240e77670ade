"""The saved view of a study: what MLflow's page is told, as it reads it back."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from sweeper.tracking.mlflow_mirror import varied
from sweeper.tracking.mlflow_names import MAX_TAG_LENGTH
from sweeper.tracking.mlflow_view import TAG_PREFIX, view_key, view_route, view_tag
from tests.factories import outcome

PARENT = "0123456789abcdef0123456789abcdef"


def state(parameters: list[str]) -> dict[str, Any]:
    """As MLflow unpacks it."""
    _, text = view_tag("s", PARENT, parameters, 1)
    packed = json.loads(text)["state"].removeprefix("deflate;")
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return found


def test_it_shows_the_trials_of_its_study_in_charts_of_sections_that_are_there() -> None:
    found = state(["max_num_seqs"])
    assert found["searchFilter"] == f"tags.`mlflow.parentRunId` = '{PARENT}'"
    sections = {section["uuid"] for section in found["compareRunSections"]}
    charts = found["compareRunCharts"]
    assert {chart["metricSectionId"] for chart in charts} <= sections
    assert len({chart["uuid"] for chart in charts}) == len(charts)
    assert {chart["type"] for chart in charts} == {"SCATTER", "BAR", "PARALLEL", "LINE"}
    (parallel,) = [chart for chart in charts if chart["type"] == "PARALLEL"]
    assert parallel["selectedParams"] == ["max_num_seqs"]


def test_the_address_names_the_view_that_was_saved() -> None:
    key, text = view_tag("s", PARENT, [], 1)
    assert key == TAG_PREFIX + view_key(PARENT)
    assert view_key(PARENT) in view_route("1", PARENT)
    assert json.loads(text)["name"] == "study s"


def test_a_large_space_fits_into_a_tag_and_the_plot_stays_readable() -> None:
    names = [f"flag.a-rather-long-name-of-a-parameter-{i}" for i in range(60)]
    assert len(view_tag("s" * 100, PARENT, names, 1)[1]) < MAX_TAG_LENGTH
    found = state(names)
    (parallel,) = [chart for chart in found["compareRunCharts"] if chart["type"] == "PARALLEL"]
    assert len(parallel["selectedParams"]) <= 8


def test_the_same_study_has_the_same_view() -> None:
    assert view_tag("s", PARENT, ["a"], 1) == view_tag("s", PARENT, ["a"], 1)


def test_parameters_of_the_plot_are_those_that_leave_no_trial_out() -> None:
    """MLflow's plot leaves out a run whose value is a word where others have numbers."""
    deployments = [
        {},
        {"max_num_seqs": 4, "quantization": "fp8", "enforce_eager": True, "kv": 1},
        {"max_num_seqs": 8, "quantization": "fp8", "kv": 2},
    ]
    trials = [outcome(i, deployment=d) for i, d in enumerate(deployments)]
    assert varied(trials) == ["enforce_eager", "quantization"]
    assert varied(trials[1:]) == ["enforce_eager", "kv", "max_num_seqs"]
    refused = outcome(3, deployment={"dtype": "half"}, launched=False)
    assert "dtype" not in varied([*trials, refused])
