from __future__ import annotations

import json

import pytest

from sweeper.errors import ConfigError
from sweeper.report.comparison.compare import Comparison, compare, to_dict
from sweeper.report.comparison.text import WIDTH, render_comparison
from tests.report.comparison.sides import foreign, manifest, point, trial


def comparison() -> Comparison:
    long = {f"parameter_number_{i}": "x" * 40 for i in range(6)}
    one = point(1, single_stream_tokens_per_s=40.0)
    a = trial(points=[one, point(8), point(32)])
    told = manifest(engine={"version": "0.30.0"}, effective_args={"x": "[bold]y"})
    b = trial("two", points=[one, point(8, throughput=150.0)], deployment=long, told=told)
    return compare(a, b)


def test_it_fits_into_100_columns() -> None:
    text = render_comparison(comparison())
    assert max(map(len, text.splitlines())) <= WIDTH == 100


def test_conditions_come_first_then_results_then_the_verdict() -> None:
    text = render_comparison(comparison())
    places = [
        text.index(word)
        for word in (
            "one/1: trial 1",
            "conditions",
            "engine version",
            "concurrency 1: single-stream speed",
            "concurrency 8: system throughput",
            "only a was measured at: concurrency 32",
            "verdict: unfair",
        )
    ]
    assert places == sorted(places)
    assert "b better by 50 %" in text
    assert "neither tells: model revision" in text
    assert "[bold]y" in text


def test_json_has_the_same_content() -> None:
    data = json.loads(json.dumps(to_dict(comparison()), allow_nan=False))
    text = render_comparison(comparison())
    assert data["verdict"]["fairness"] == "unfair"
    assert data["levels_only_a"] == ["concurrency 32"]
    assert [level["level"] for level in data["levels"]] == ["concurrency 1", "concurrency 8"]
    for row in data["conditions"]:
        assert row["label"] in " ".join(text.split()) or len(row["label"]) > 25
    result = next(r for r in data["levels"][1]["results"] if r["metric"] == "output_tokens_per_s")
    assert result["judgement"] == "b better"
    assert result["ratio"] == pytest.approx(1.5)
    assert data["quality"]["metric"] == "quality"


def test_no_level_in_common_is_said() -> None:
    text = render_comparison(compare(trial(points=[point(4)]), foreign()))
    assert "no load level that both sides have" in text
    assert "note: a note" in text


def test_one_level_can_be_asked_for() -> None:
    a = trial(points=[point(8), point(32)])
    for asked in ("32", "concurrency 32"):
        assert [level.name for level in compare(a, a, asked).levels] == ["concurrency 32"]
    with pytest.raises(ConfigError, match="load=7") as caught:
        compare(a, a, "7")
    assert "a has concurrency 8, concurrency 32" in caught.value.remedy
