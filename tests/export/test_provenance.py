from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.export.admission import admission
from sweeper.export.bundle import ExportInput
from sweeper.export.provenance import render
from sweeper.export.vllm_config import config_text
from tests.export.conftest import make_source
from tests.factories import open_load, open_study, outcome, point, study
from tests.pareto.again import confirmed


def readme(source: ExportInput) -> str:
    return render(source)["README.md"].text


def test_readme_says_what_was_measured_and_where(source: ExportInput) -> None:
    text = readme(source)
    assert "up to **8 concurrent streams**" in text
    assert "| Output tokens/s, whole system | 150 | [147, 153] | 100 | 1.50 |" in text
    assert "End-to-end latency P95, ms (uncertain)" in text
    assert "(n = 64 requests)" in text
    assert "Not confirmed by repeats" in text
    assert "vllm 0.32.0" in text
    assert "2 x NVIDIA H200" in text
    assert "`enable_prefix_caching=False`, `max_num_seqs=64`" in text


def test_confirmed_deployment_does_not_carry_the_warning() -> None:
    figures = {0: [100, 101, 99], 1: [150, 148, 151]}
    text = readme(make_source(outcomes=confirmed(study(), figures, latency=900)))
    assert "Not confirmed" not in text
    assert "> Confirmed: better by 49" in text.split("## Start", maxsplit=1)[0]


def test_a_deployment_that_was_measured_once_says_how_to_confirm_it() -> None:
    found = replace(make_source().recommendation, to_confirm="python -m sweeper resume study=s")
    text = readme(make_source(recommendation=found))
    assert "To confirm it: `python -m sweeper resume study=s`" in text


def test_broken_promise_and_prediction_are_said_first() -> None:
    missed = make_source(select=SelectConfig(slo=SloConfig(e2e_p95_ms=1)))
    assert "does not keep the SLO" in readme(missed).split("## Start", maxsplit=1)[0]
    predicted = [outcome(0, manifest={"engine": {"predicted": True}})]
    text = readme(make_source(outcomes=predicted))
    assert "Predicted, not measured" in text
    assert "## Predicted at concurrency" in text


def test_json_has_the_numbers_and_no_secrets(source: ExportInput) -> None:
    text = render(source)["recommendation.json"].text
    data = json.loads(text)
    assert data["admission_limit_streams"] == 8
    assert data["recommendation"]["point"]["output_tokens_per_s"] == 150
    assert data["recommendation"]["confirmed"] is False
    assert data["flags"]["enable_prefix_caching"] is False
    assert "very-secret" not in text + readme(source)


@pytest.mark.parametrize("name", ["recommendation.json", "README.md"])
def test_rendering_is_deterministic(name: str) -> None:
    assert render(make_source())[name] == render(make_source())[name]


def test_unset_limit_does_not_break_the_json() -> None:
    missed = make_source(
        outcomes=[outcome(0, agreement=None)],
        select=SelectConfig(slo=SloConfig(min_quality=0.9)),
    )
    data = json.loads(render(missed)["recommendation.json"].text)
    assert data["recommendation"]["missed"] == {"min_quality": None}


def test_limit_of_a_rate_is_the_rate_and_what_was_under_way() -> None:
    source = make_source(outcomes=open_study(), select=SelectConfig(slo=SloConfig(e2e_p95_ms=500)))
    text = readme(source)
    assert "up to **2 requests/s** a server (poisson arrivals, 5 of them under way" in text
    assert "## Measured at 2 requests/s (poisson)" in text
    data = json.loads(render(source)["recommendation.json"].text)
    assert data["admission_limit_requests_per_s"] == 2.0
    assert data["concurrent_requests"] == 5.0
    assert "admission_limit_streams" not in data
    assert "None" not in text


@pytest.mark.parametrize(
    ("load", "named"),
    [
        (
            {"kind": "ramp", "rate_per_s": 4.0, "start_rate_per_s": 0.5, "arrivals": "poisson"},
            "**ramp 0.5 to 4 requests/s (poisson)**",
        ),
        ({"kind": "replay", "time_scale": 2.0}, "**trace at 2x speed**"),
        ({"kind": "batch", "concurrency": 16}, "**batch of 16**"),
    ],
)
def test_load_that_was_not_steady_gives_no_limit(load: dict[str, Any], named: str) -> None:
    source = make_source(outcomes=[outcome(0, points=[point(load=load)])])
    assert named in readme(source)
    assert "no limit for admission" in readme(source)
    assert not any(name.startswith("admission") for name in admission(source.recommendation))


def test_saturated_load_is_a_warning() -> None:
    overrun = point(load=open_load(4.0, saturated=True))
    text = readme(make_source(outcomes=[outcome(0, points=[overrun])]))
    assert "could not keep up" in text


MADE: dict[str, Any] = {
    "key": "a" * 16,
    "recipe": {"name": "w4a16", "tool": "llmcompressor", "bits": 4, "group_size": 64},
    "versions": {"llmcompressor": "0.14.0", "torch": "2.13.0"},
    "made_s": 92.0,
    "reused": True,
    "digest": "d" * 32,
}


def test_a_made_checkpoint_is_named_and_its_cache_is_warned_of() -> None:
    path = f"/home/me/.cache/sweeper/checkpoints/{'a' * 16}"
    source = make_source(made=MADE, model_path=path)
    text, yaml_text = readme(source), config_text(source)
    for told in ("w4a16", "llmcompressor 0.14.0", "d" * 32, "group_size=64", path):
        assert told in yaml_text
        assert told in text.replace("\\", "")
    assert "copy the folder" in yaml_text
    assert "Its checkpoint lies in a cache" in text.partition("## Start")[0]
    assert json.loads(render(source)["recommendation.json"].text)["made"] == MADE
    assert yaml.safe_load(yaml_text)["model"] == path
    assert "cache" not in readme(make_source())


def test_hostile_words_of_a_recipe_stay_in_their_comment() -> None:
    hostile = {**MADE, "recipe": {"name": "x\nport: 1", "tool": "t`<b>"}}
    source = make_source(made=hostile)
    assert yaml.safe_load(config_text(source))["port"] == source.port
    assert "<b>" not in readme(source).replace("\\<b\\>", "")


def test_the_quality_that_ranked_is_named() -> None:
    figures = {"nats_per_token": 2.0, "nats_se": 0.01, "perplexity": 7.39}
    change = {"windows": 40, "change_nats": 0.0, "change_se_nats": 0.0}
    outcomes = study()
    for trial in outcomes:
        if trial.quality is not None:
            trial.quality.ranked_by = "perplexity"
            trial.quality.perplexity = {**figures, **change}
    assert "| Perplexity | 7.39 | — | 7.39 | — |" in readme(make_source(outcomes=outcomes))
    assert "| Agreement with the reference | 100.0% | — | 100.0% | — |" in readme(make_source())
