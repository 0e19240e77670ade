"""A saved study in Optuna's dashboard: served by the dashboard itself, without a server."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import LoadConfig, ObjectiveConfig, SamplerConfig, SloConfig, SpaceConfig
from sweeper.search.objective import Objective
from sweeper.search.proposals import Proposals
from sweeper.space.parse import parse_space
from sweeper.verdicts import Verdict
from tests.factories import outcome, point

SPACE = SpaceConfig(
    parameters={
        "max_num_seqs": {"choices": [4, 16, 64], "default": 16},
        "quantization": {"choices": ["none", "fp8"]},
    }
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A study that told its sampler of a baseline, a better trial, a failure and a refusal."""
    path = tmp_path / "optuna.journal"
    objective = Objective(ObjectiveConfig(), SloConfig(), LoadConfig(), with_quality=True)
    trials = [
        outcome(0, points=[point(8, throughput=100.0)]),
        outcome(1, deployment={"quantization": "fp8"}, points=[point(8, throughput=150.0)]),
        outcome(2, deployment={"max_num_seqs": 64}, verdict=Verdict.CAPACITY),
        outcome(
            3, deployment={"max_num_seqs": 999}, verdict=Verdict.INFEASIBLE_CONFIG, launched=False
        ),
    ]
    objective.anchor(trials[0])
    Proposals(path, parse_space(SPACE), SamplerConfig(kind="random"), objective, trials)
    return path


def test_optuna_reads_the_file_as_its_own(journal: Path) -> None:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    study = optuna.load_study(
        study_name="sweeper", storage=JournalStorage(JournalFileBackend(str(journal)))
    )
    assert study.metric_names == ["log_hypervolume", "quality"]
    told = [trial.user_attrs for trial in study.trials]
    assert [one["number"] for one in told] == [0, 1, 2, 3]
    assert [one["verdict"] for one in told] == ["OK", "OK", "CAPACITY", "INFEASIBLE_CONFIG"]
    assert told[1]["best_output_tokens_per_s"] == 150.0
    assert "memory" in told[2]["cause"] and "remedy" in told[2]
    assert json.loads(told[3]["deployment"]) == {"max_num_seqs": 999}
    assert "best_output_tokens_per_s" not in told[2]


def test_the_dashboard_shows_front_verdicts_and_causes(journal: Path) -> None:
    dashboard = pytest.importorskip("optuna_dashboard", reason="the extra `dashboard` is missing")
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    app = dashboard.wsgi(JournalStorage(JournalFileBackend(str(journal))))
    study = asked(app, "/api/studies/0")
    assert study["objective_names"] == ["log_hypervolume", "quality"]
    assert study["directions"] == ["maximize", "maximize"]
    assert [trial["state"] for trial in study["trials"]] == [
        "Complete",
        "Complete",
        "Pruned",
        "Pruned",
    ]
    assert [trial["number"] for trial in study["best_trials"]] == [1]
    assert {"verdict", "cause", "deployment"} <= {attr["key"] for attr in study["union_user_attrs"]}


def asked(app: Any, path: str) -> Any:
    """The JSON that a WSGI application answers."""
    environment = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
    }
    status: list[str] = []
    body = b"".join(app(environment, lambda line, _headers, _info=None: status.append(line)))
    assert status[0].startswith("200"), (status, body[:300])
    return json.loads(body)
