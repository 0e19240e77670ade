"""A flag without effect is a failed trial, by its name; what nobody tells is on record."""

from __future__ import annotations

import json

from sweeper.config.schema import LoadConfig, ObjectiveConfig, SloConfig
from sweeper.search.objective import Objective
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase, Verdict
from tests.trial.conftest import Runner


def test_flag_without_effect_is_a_failed_trial_with_its_name(trial: Runner) -> None:
    asked = {"max_num_seqs": 32, "block_size": 32}
    outcome = trial(
        {"faults": {"ignores": ["max_num_seqs"]}}, deployment=asked, engine_parameters=asked
    ).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.INFEASIBLE_CONFIG, Phase.START)
    assert outcome.cause == "max_num_seqs had no effect: asked 32, in effect 64"
    assert outcome.learnt["ineffective"] == {"max_num_seqs": "asked 32, in effect 64"}
    assert outcome.points == []
    again = TrialOutcome.from_dict(json.loads(json.dumps(outcome.to_dict())))
    assert again == outcome
    told = Objective(ObjectiveConfig(), SloConfig(), LoadConfig(), True).tell(outcome)
    assert told.values is None
    assert told.violation > 0


def test_deployment_that_took_effect_is_measured(trial: Runner) -> None:
    asked = {"max_num_seqs": 32, "flag.swap_space": 4}
    outcome = trial(deployment=asked, engine_parameters=asked).outcome
    assert outcome.verdict is Verdict.OK, outcome.cause
    assert outcome.manifest["server_facts"]["not_told"] == ["flag.swap_space"]
