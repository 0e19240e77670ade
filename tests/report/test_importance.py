"""Which parameters mattered, which did nothing, and what is too little to tell."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from sweeper.config.schema import SpaceConfig
from sweeper.report.importance.compute import MIN_TRIALS, Importance, importances
from sweeper.report.importance.groups import groups, measured
from sweeper.space.canonical import canonical, deployment_hash
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

SPACE = parse_space(
    SpaceConfig(
        name="s",
        parameters={
            "max_num_seqs": [8, 16, 32, 64],
            "block_size": [16, 32],
            "speculative": ["default", "ngram"],
            "num_speculative_tokens": {"choices": [2, 4, 6], "when": {"speculative": "ngram"}},
        },
    )
)


def trials(count: int, worth: Callable[[dict[str, Any]], float]) -> list[TrialOutcome]:
    """Random deployments, each worth what its raw values say, and a little noise."""
    draw, made = random.Random(1), []
    for number in range(count):
        raw = {
            "max_num_seqs": draw.choice([8, 16, 32, 64]),
            "block_size": draw.choice([16, 32]),
            "speculative": draw.choice(["default", "ngram"]),
            "num_speculative_tokens": draw.choice([2, 4, 6]),
        }
        deployment = canonical(SPACE, raw)
        made.append(
            TrialOutcome(
                number, "search", deployment, deployment_hash(deployment) + str(number),
                Verdict.OK, "stop", learnt={"worth": worth(raw) + draw.gauss(0.0, 0.3)},
            )
        )  # fmt: skip
    return made


def worth_of(outcome: TrialOutcome) -> float:
    return float(outcome.learnt["worth"])


def judged(made: list[TrialOutcome]) -> dict[str, Importance]:
    found = [one for group in groups(SPACE, made, worth_of) for one in importances(group, +1)]
    return {one.parameter: one for one in found}


def drafted(raw: dict[str, Any]) -> float:
    tokens = 2.0 * raw["num_speculative_tokens"] if raw["speculative"] == "ngram" else 4.0
    return raw["max_num_seqs"] / 8 + tokens


def test_what_mattered_is_told_from_what_did_nothing() -> None:
    found = judged(trials(40, lambda raw: raw["max_num_seqs"] / 4))
    assert found["max_num_seqs"].matters and found["max_num_seqs"].share > 0.8
    assert found["max_num_seqs"].best == 64
    assert not found["block_size"].matters and not found["speculative"].matters
    one = found["max_num_seqs"]
    assert one.low <= one.share <= one.high


def test_a_condition_is_looked_at_where_it_holds() -> None:
    made = trials(50, drafted)
    everywhere, inside = groups(SPACE, made, worth_of)
    assert "num_speculative_tokens" not in everywhere.columns
    assert inside.condition == "speculative=ngram" and inside.asked == ("num_speculative_tokens",)
    assert "speculative" not in inside.columns, "it is the same in all of them"
    drafts = judged(made)["num_speculative_tokens"]
    assert drafts.matters and drafts.best == 6
    assert drafts.trials == sum(o.deployment.get("speculative") == "ngram" for o in made)


def test_nothing_is_read_into_noise() -> None:
    assert not any(one.matters for one in judged(trials(30, lambda raw: 0.0)).values())


def test_few_trials_tell_nothing() -> None:
    assert not judged(trials(MIN_TRIALS - 1, lambda raw: raw["max_num_seqs"]))


def test_figures_that_are_all_alike_tell_nothing() -> None:
    made = trials(20, lambda raw: 0.0)
    for outcome in made:
        outcome.learnt["worth"] = 1.0
    assert not judged(made)


def test_the_same_trials_give_the_same_answer() -> None:
    (group, *_) = groups(SPACE, trials(10, drafted), worth_of)
    assert importances(group, +1) == importances(group, +1)


@pytest.mark.parametrize(
    "left_out",
    [
        {"verdict": Verdict.CAPACITY},
        {"partial": "cut"},
        {"kind": "confirm"},
    ],
)
def test_only_whole_trials_of_deployments_count(left_out: dict[str, Any]) -> None:
    (made,) = trials(1, lambda raw: 0.0)
    assert measured([made]) == [made]
    for name, value in left_out.items():
        setattr(made, name, value)
    assert not measured([made])


def test_a_deployment_of_another_space_is_left_out() -> None:
    (made,) = trials(1, lambda raw: 0.0)
    made.deployment = {"max_num_seqs": 7}
    assert not groups(SPACE, [made], worth_of)[0].values
