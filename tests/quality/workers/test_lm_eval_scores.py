"""The one score of a task, out of what lm-eval tells."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def sample(place: int, filter_name: str = "none", **metrics: Any) -> dict[str, Any]:
    return {"doc_id": place, "filter": filter_name, **metrics}


def results(**tasks: dict[str, Any]) -> dict[str, Any]:
    """As `simple_evaluate` gives them for tasks without a group."""
    return {
        "results": tasks,
        "group_subtasks": {},
        "higher_is_better": {},
        "n-samples": {name: {"original": 100, "effective": 4} for name in tasks},
        "samples": {},
    }


@pytest.mark.parametrize(
    ("metrics", "metric", "value"),
    [
        ({"acc,none": 0.5, "acc_norm,none": 0.6}, "acc_norm", 0.6),
        ({"f1,none": 0.5, "exact_match,none": 0.4}, "exact_match", 0.4),
        (
            {"exact_match,flexible-extract": 0.7, "exact_match,strict-match": 0.3},
            "exact_match,strict-match",
            0.3,
        ),
        ({"exact_match,get-answer": 0.2, "exact_match,other": 0.9}, "exact_match,get-answer", 0.2),
        ({"bleu,none": 20.0, "chrf,none": 40.0}, "bleu", 20.0),
        ({"acc,none": float("nan"), "f1,none": 0.3}, "f1", 0.3),
    ],
)
def test_which_metric_is_the_score(
    scores: ModuleType, metrics: dict[str, Any], metric: str, value: float
) -> None:
    told = scores.summary("t", results(t={"alias": "t", "sample_len": 4, **metrics}))
    assert (told["metric"], told["value"], told["n"]) == (metric, value, 4)


def test_the_error_goes_with_its_metric_and_filter(scores: ModuleType) -> None:
    told = {
        "exact_match,strict-match": 0.3,
        "exact_match_stderr,strict-match": 0.03,
        "exact_match,flexible-extract": 0.7,
        "exact_match_stderr,flexible-extract": 0.07,
    }
    assert scores.summary("t", results(t=told))["se"] == 0.03
    assert scores.summary("t", results(t={"acc,none": 0.5, "acc_stderr,none": "N/A"}))["se"] is None


def test_a_perplexity_is_no_score(scores: ModuleType) -> None:
    told = results(t={"word_perplexity,none": 20.0, "word_perplexity_stderr,none": "N/A"})
    told["higher_is_better"] = {"t": {"word_perplexity": False}}
    with pytest.raises(scores.NoScoreError, match="it has: word_perplexity,none"):
        scores.summary("t", told)
    with pytest.raises(scores.NoScoreError):
        scores.summary("t", results(t={"alias": "t"}))


def test_answers_are_those_of_the_score_in_the_order_of_the_questions(scores: ModuleType) -> None:
    told = results(t={"exact_match,strict-match": 0.5, "exact_match,flexible-extract": 1.0})
    told["samples"]["t"] = [
        sample(10, "strict-match", exact_match=1.0),
        sample(2, "strict-match", exact_match=0.0),
        sample(2, "flexible-extract", exact_match=1.0),
        sample(10, "flexible-extract", exact_match=1.0),
    ]
    assert scores.summary("t", told)["answers"] == {"t": [0, 1]}
    told["samples"]["t"][0]["exact_match"] = (1, 2)
    assert scores.summary("t", told)["answers"] == {}


def test_too_many_answers_are_left_out(scores: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    told = results(t={"acc,none": 1.0})
    told["samples"]["t"] = [sample(place, acc=1.0) for place in range(3)]
    assert scores.summary("t", told)["answers"] == {"t": [1, 1, 1]}
    monkeypatch.setattr(scores, "MAX_ANSWERS", 2)
    assert scores.summary("t", told)["answers"] == {}


def group(count: int, **own: Any) -> dict[str, Any]:
    members = {
        f"g_{n}": {"acc,none": n / count, "acc_stderr,none": 0.1, "acc_norm,none": 0.9}
        for n in range(count)
    }
    told = results(**members)
    told["results"]["g"] = {"alias": "g", **own}
    told["group_subtasks"] = {"g": list(members)}
    for name in members:
        told["samples"][name] = [sample(0, acc=0.0, acc_norm=0.9)]
    return told


def test_a_group_has_its_own_mean(scores: ModuleType) -> None:
    told = scores.summary("g", group(4, **{"acc,none": 0.42, "acc_stderr,none": 0.05}))
    assert (told["metric"], told["value"], told["se"], told["n"]) == ("acc", 0.42, 0.05, 16)
    assert told["parts"] == {"g_0": 0.0, "g_1": 0.25, "g_2": 0.5, "g_3": 0.75}
    assert told["answers"]["g_3"] == [0]


def test_members_of_a_group_without_its_metric_do_not_count(scores: ModuleType) -> None:
    told = group(2, **{"acc,none": 0.42})
    told["results"]["g_1"] = {"exact_match,none": 1.0}
    assert scores.summary("g", told)["n"] == 4


def test_a_big_group_does_not_list_its_members(scores: ModuleType) -> None:
    count = scores.MAX_PARTS + 1
    assert scores.summary("g", group(count, **{"acc,none": 0.42}))["parts"] == {}


def test_a_tag_gets_the_mean_of_its_tasks(scores: ModuleType) -> None:
    told = scores.summary(
        "tag",
        results(
            a={"acc,none": 0.2, "acc_stderr,none": 0.03},
            b={"acc,none": 0.6, "acc_stderr,none": 0.04},
        ),
    )
    assert (told["metric"], told["n"]) == ("mean acc", 8)
    assert told["value"] == pytest.approx(0.4) and told["se"] == pytest.approx(0.025)
    mixed = scores.summary("tag", results(a={"acc,none": 0.2}, b={"f1,none": 0.6}))
    assert (mixed["metric"], mixed["se"]) == ("mean score", None)
    with pytest.raises(scores.NoScoreError):
        scores.summary("tag", results())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_mean_lies_among_its_parts(scores: ModuleType, values: list[float]) -> None:
    mean = scores.mean_of(scores.Figure("acc", "none", value, 0.1) for value in values)
    assert min(values) - 1e-9 <= mean.value <= max(values) + 1e-9
    assert mean.se == pytest.approx(0.1 / math.sqrt(len(values)))
