"""A study whose checkpoints are made on the way: by a fake tool, served by the mock engine."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeper import verbs
from sweeper.engine.mock.engine import MockEngine
from tests.quantize import fakes
from tests.verbs.test_study_on_mock import journal

SPACE = """
name: small
parameters:
  max_num_seqs: {choices: [default, 4, 8]}
seeds:
  - {quantization: w4a16}
  - {quantization: w4a16, max_num_seqs: 4}
  - {quantization: w8a8}
  - {quantization: w8a8, max_num_seqs: 4}
"""
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "dtype": "bfloat16",
}


def settings(folder: Path, launches: int) -> list[str]:
    return [
        "engine=mock",
        "+engine.options.start_s=0",
        "+engine.options.compile_s=0",
        "+engine.options.decode_ms=10",
        "hardware=h100_80gb",
        f"model.path={folder / 'model'}",
        f"cache_dir={folder / 'cache'}",
        "space=small.yaml",
        "quantize=[w4a16,w8a8]",
        f"quantize.python={sys.executable}",
        "quantize.device=cpu",
        "workload.input_tokens=8",
        "workload.output_tokens=8",
        "load.concurrency=[1]",
        "load.requests_per_stream=2",
        "quality=none",
        f"budget.launches={launches}",
        "sampler=random",
        "tracking=none",
        "study=s",
    ]


@contextmanager
def place(folder: Path) -> Iterator[None]:
    """The fake tool, and a mock whose study makes checkpoints as that of a real engine does."""
    plain = MockEngine.facts
    with pytest.MonkeyPatch.context() as patch:
        fakes.install(patch)
        patch.setattr(MockEngine, "facts", lambda self: replace(plain(self), predicted=False))
        patch.chdir(folder)
        yield


def set_up(folder: Path, say: dict[str, Any]) -> Path:
    (folder / "small.yaml").write_text(SPACE)
    model = fakes.model_in(folder / "model", say)
    (model / "config.json").write_text(json.dumps(CONFIG))
    (model / "model.safetensors").write_bytes(b"w" * 4096)
    return model


def run(folder: Path, launches: int) -> int:
    with place(folder):
        return verbs.run(settings(folder, launches))


def run_elsewhere(folder: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    run(Path(folder), 2)


def test_made_reused_refused_and_learnt_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = {"then": "error", "kind": "unsupported", "message": "W8A8 is not for this model"}
    model = set_up(tmp_path, {"W8A8": fault})
    assert run(tmp_path, 5) == 0
    said = capsys.readouterr().out
    trials = journal(tmp_path / "studies" / "s")
    assert [(t["number"], t["verdict"], t["phase"], t["launched"]) for t in trials[:5]] == [
        (0, "OK", "stop", True),
        (1, "OK", "stop", True),
        (2, "OK", "stop", True),
        (3, "INFEASIBLE_CONFIG", "quantize", True),
        (4, "INFEASIBLE_CONFIG", "plan", False),
    ]
    base, first, second, unmade, refused = trials[:5]
    assert base["manifest"]["checkpoint_bytes"] == 4096
    assert "made" not in base["manifest"]
    made = first["manifest"]["made"]
    assert made["recipe"]["tool"] == "llmcompressor"
    assert made["reused"] is False
    assert second["manifest"]["made"] == {**made, "reused": True}
    assert first["manifest"]["checkpoint"].endswith(f"checkpoints/{made['key']}")
    assert first["timings_s"]["quantize"] > 0

    assert "W8A8 is not for this model" in unmade["cause"]
    assert unmade["learnt"]["rule"] == "quantize_unsupported"
    assert refused["learnt"]["bound"] == "quantize_unsupported-3"
    assert "could not make its checkpoint" in refused["cause"]
    assert fakes.runs(model) == 2, "one was made and one refused, whatever else was set"
    assert "trial 1: quantize w4a16" in said
    assert "trial 1: quantize: load" in said
    assert "no longer launched (quantize_unsupported-3)" in said


def test_kill_nine_while_one_is_made_resumes_the_trial(tmp_path: Path) -> None:
    model = set_up(tmp_path, {"takes_s": 60})
    tuner = multiprocessing.get_context("spawn").Process(
        target=run_elsewhere, args=(str(tmp_path),)
    )
    tuner.start()
    deadline = time.monotonic() + 60
    while fakes.runs(model) == 0:
        assert tuner.is_alive() and time.monotonic() < deadline
        time.sleep(0.02)
    worker = int((model / "runs.txt").read_text())
    tuner.kill()
    tuner.join()
    while psutil.pid_exists(worker):
        assert time.monotonic() < deadline, "the worker ends with its tuner"
        time.sleep(0.02)
    (tmp_path / "model" / "fake.json").write_text("{}")
    assert run(tmp_path, 2) == 0
    trials = journal(tmp_path / "studies" / "s")
    assert [(t["number"], t["attempt"], t["verdict"]) for t in trials] == [
        (0, 1, "OK"),
        (1, 1, "OK"),
    ]
    assert trials[1]["manifest"]["made"]["reused"] is False
    made = list((tmp_path / "cache" / "checkpoints").glob("[!.]*"))
    assert [path.name for path in made] == [trials[1]["manifest"]["made"]["key"]]
