"""A whole simulated study in this process, with everything that it leaves behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.estimate.simulator import client
from tests.estimate.simulator.conftest import FAKE

SWEEP = [
    "model=qwen7b",
    "engine=simulate",
    f"engine.python={sys.executable}",
    "hardware=h200",
    "study=s",
    "budget.launches=3",
    "sampler=random",
    "load.concurrency=[1,16]",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(client, "WORKER", FAKE)
    monkeypatch.setenv("SWEEPER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_says_everywhere_that_it_is_predicted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SWEEP, "tracking=none"]) == 0
    said = capsys.readouterr().out
    assert "not simulated, so left at the engine's default: " in said
    assert "quantization=awq is left out: an operator" in said
    assert "(predicted)" in said and "tokens/s predicted" in said
    study = here / "studies" / "s"
    lines = [json.loads(line) for line in (study / "trials.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    for line in lines:
        assert line["manifest"]["measured"] is False
        assert line["manifest"]["engine"]["predicted"] is True
        assert line["quality"] is None
        assert line["timings_s"]["total"] >= 60.0 > line["timings_s"]["real"]
    assert "Every figure of this study is predicted" in (study / "report.html").read_text()
    assert "PREDICTED, NOT MEASURED" in (study / "recommended" / "vllm.yaml").read_text()
    told = json.loads((study / "recommended" / "recommendation.json").read_text())
    assert told["recommendation"]["predicted"] is True

    # What was measured and what was predicted never share a study.
    identity = study / "study.yaml"
    text = identity.read_text()
    assert "name: simulate" in text and "predicted: true" in text
    identity.write_text(
        text.replace("name: simulate", "name: vllm", 1).replace(
            "predicted: true", "predicted: false"
        )
    )
    assert main([*SWEEP, "tracking=none", "budget.launches=4"]) == 2
    refused = capsys.readouterr().err
    assert "engine.name: vllm → simulate" in refused
    assert "engine.predicted: false → true" in refused


def test_a_gpu_without_tables_is_refused_at_once(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SWEEP, "hardware=t4"]) == 2
    said = capsys.readouterr().err
    assert "no measured operators of the GPU 't4'" in said and "h100_80gb" in said
    assert not (here / "studies").exists()
