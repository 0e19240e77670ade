"""A batch limit that the engine does not tell, judged by what it was seen to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import LoadConfig, WorkloadConfig
from sweeper.trial import run as trial_run
from sweeper.trial.seen_in_effect import ignored_batch_limit
from sweeper.verdicts import Phase, Verdict
from tests.trial.conftest import Runner, plan_in


@pytest.mark.parametrize(
    ("parameters", "running", "ignored"),
    [
        ({}, 500.0, False),
        ({"max_num_seqs": 4}, 0.0, False),
        ({"max_num_seqs": 4}, 4.0, False),
        ({"max_num_seqs": 4}, 5.0, True),
        ({"max_num_seqs": 4, "data_parallel_size": 2}, 8.0, False),
        ({"max_num_seqs": 4, "data_parallel_size": 2}, 9.0, True),
    ],
)
def test_a_limit_that_was_exceeded_was_not_followed(
    tmp_path: Path, parameters: dict[str, Any], running: float, ignored: bool
) -> None:
    found = ignored_batch_limit(plan_in(tmp_path, engine_parameters=parameters), running)
    assert (found is not None) == ignored
    if found is not None:
        assert (found.verdict, found.phase) == (Verdict.INFEASIBLE_CONFIG, Phase.LOAD)
        assert found.cause.startswith("max_num_seqs had no effect: asked 4, ")


def test_what_the_gauges_show_reaches_the_verdict(
    trial: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    def note(_: object, running: float) -> None:
        seen.append(running)

    monkeypatch.setattr(trial_run, "ignored_batch_limit", note)
    load = LoadConfig(concurrency=[3], requests_per_stream=4, min_requests=6, gauges_every_s=0.02)
    outcome = trial(load=load, workload=WorkloadConfig(input_tokens=16, output_tokens=64)).outcome
    assert outcome.verdict is Verdict.OK, outcome.cause
    assert seen == [3.0]
