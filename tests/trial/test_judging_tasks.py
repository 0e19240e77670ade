"""lm-eval's part in a trial, with a worker that is told what to answer; the server is a mock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import LoadConfig, QualityConfig
from sweeper.quality import tasks
from sweeper.trial import judging, vital
from sweeper.trial.run import TrialResult
from sweeper.verdicts import Phase, Verdict
from tests.trial.conftest import Runner

FAKE = """
import json, os, pathlib, signal, urllib.request
import worker_protocol

def main(worker):
    request = worker.request
    key = os.environ["OPENAI_API_KEY"]
    {body}

worker_protocol.run(main)
"""
ASKS = """
    headers = {{"Authorization": f"Bearer {{key}}", "Content-Type": "application/json"}}
    body = {{"model": request["served_name"], "prompt": [1, 2], "max_tokens": 1}}
    url = request["base_url"] + "/v1/completions"
    ask = urllib.request.Request(url, json.dumps(body).encode(), headers)
    json.load(urllib.request.urlopen(ask, timeout=20))["choices"]
    return {result}
"""
KILLS = """
    launch = json.loads(pathlib.Path({record!r}).read_text())
    for pid, ticks in launch["processes"]:
        os.kill(pid, signal.SIGKILL)
    raise worker_protocol.WorkerError("server", "Cannot connect to host")
"""
REFUSED = 'raise worker_protocol.WorkerError("server", "Status code: 400, no echo here")'
Judged = Any


def score(right: int) -> str:
    answers = [1] * right + [0] * (100 - right)
    told = {"metric": "acc", "value": right / 100, "se": 0.05, "n": 100, "parts": {}}
    score = {**told, "answers": {"t": answers}}
    return repr({"tasks": {"t": score}, "longest_tokens": 40, "versions": {}})


@pytest.fixture
def judged(trial: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    monkeypatch.setattr(vital, "DYING_S", 0.5)

    def run(body: str, quality: dict[str, Any] | None = None, **plan: Any) -> TrialResult:
        script = tmp_path / "fake.py"
        script.write_text(FAKE.format(body=body))
        monkeypatch.setattr(tasks, "WORKER", script)
        config = QualityConfig(
            kind="lm_eval", tasks=["t"], python=sys.executable, reference_tokens=8, max_prompts=3,
            **quality or {},
        )  # fmt: skip
        load = LoadConfig(concurrency=[1], requests_per_stream=2, min_requests=2)
        return trial(quality=config, load=load, **plan)

    return run


def test_tasks_rank_and_have_a_floor(judged: Judged) -> None:
    made = judged(ASKS.format(result=score(80)))
    quality = made.outcome.quality
    assert made.outcome.verdict is Verdict.OK and quality is not None
    assert (quality.score, quality.ranked_by, quality.is_no_change) == (0.8, "tasks", True)
    assert quality.agreement == 1.0, "agreement is measured too"
    assert made.reference is not None and made.reference.longest_tokens >= 40

    candidate = {"reference": made.reference, "may_write_reference": False, "quality_key": "other"}
    worse = judged(ASKS.format(result=score(60)), {"max_task_drop": 0.05}, **candidate).outcome
    assert worse.verdict is Verdict.QUALITY_FAIL and "t acc fell by 0.200" in worse.cause
    alike = judged(ASKS.format(result=score(79)), {"max_task_drop": 0.05}, **candidate).outcome
    assert alike.verdict is Verdict.OK and alike.quality is not None
    assert alike.quality.is_no_change and alike.quality.settled(quality) == 0.8


def test_a_server_that_refuses_is_no_fault_of_the_deployment(judged: Judged) -> None:
    outcome = judged(REFUSED).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.MEASUREMENT_INVALID, Phase.QUALITY)
    assert "no echo here" in outcome.cause and "echo" in outcome.remedy
    assert outcome.points, "speeds are kept"


def test_a_server_that_dies_meanwhile_is_told_from_that(judged: Judged, tmp_path: Path) -> None:
    outcome = judged(KILLS.format(record=str(tmp_path / "launch.json"))).outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.QUALITY)


def test_only_what_needs_something_beforehand_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[Any] = []
    monkeypatch.setattr(tasks, "prepare", lambda *given: prepared.append(given[:3]))
    for kind in ("agreement", "none", "perplexity"):
        judging.prepare(QualityConfig(kind=kind), "m", tmp_path, lambda line: None)
    assert prepared == []
    config = QualityConfig(kind="lm_eval", tasks=["t"])
    judging.prepare(config, "m", tmp_path, lambda line: None)
    assert prepared == [(config, "m", tmp_path)]
