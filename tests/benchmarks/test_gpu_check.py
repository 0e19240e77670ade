"""The GPU check without a GPU: its parts, and the whole with a tiny shape."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_check

ROOT = Path(__file__).resolve().parents[2]


def trial(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "deployment": {},
        "verdict": "OK",
        "phase": "stop",
        "cause": "",
        "started_at": "2026-01-02T03:04:05+00:00",
        "manifest": {
            "hardware": {"name": "NVIDIA H200", "driver": "570.1"},
            "engine": {"version": "5.19.0", "details": {"torch": "2.9.0", "cuda": "12.8"}},
            "client": {"version": "0.1.0"},
        },
        "points": [
            {
                "load": {"kind": "closed", "concurrency": 1},
                "metrics": {"ttft_p50_ms": 30.0, "tpot_p50_ms": 20.0, "output_tokens_per_s": 49.5},
                "predicted": {
                    "tpot_floor_ms": 4.0,
                    "tpot_over_floor": 5.0,
                    "output_tokens_per_s_ceiling": 250.0,
                    "output_tokens_per_s_of_ceiling_share": 0.198,
                },
                "valid": True,
            }
        ],
    }
    return {**fields, **changes}


def test_table_has_conditions_measurements_and_light() -> None:
    text = gpu_check.table([trial()], "qwen2.5-7b")
    for word in ("NVIDIA H200", "2.9.0", "12.8", "5.19.0", "2026-01-02", "single stream"):
        assert word in text
    row = next(line for line in text.splitlines() if line.startswith("| none"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == ["30.0", "20.00", "49.5", "4.00", "20.0 %", "250.0", "19.8 %"]


def test_what_is_not_known_is_a_dash() -> None:
    (point,) = trial()["points"]
    row = gpu_check.table([trial(points=[{**point, "predicted": {}}])], "tiny")
    assert row.count(" - ") == 4


def test_an_invalid_point_is_marked_and_a_failed_trial_is_told() -> None:
    (point,) = trial()["points"]
    static = {"flag.batching": "static"}
    failed = trial(deployment=static, verdict="CAPACITY", phase="start", cause="full", points=[])
    text = gpu_check.table([trial(points=[{**point, "valid": False}]), failed], "tiny", "late")
    assert "INVALID" in text
    assert "batching static: CAPACITY in start: full" in text
    assert text.endswith("late")


def test_missing_packages_are_requirements_of_the_project_without_tracking() -> None:
    missing = gpu_check.missing_requirements(lambda module: False)
    assert any(requirement.startswith("hydra-core>=") for requirement in missing)
    assert not any(requirement.startswith("mlflow") for requirement in missing)
    assert gpu_check.missing_requirements(lambda module: True) == []
    lacking = gpu_check.missing_requirements(lambda module: module != "yaml")
    assert [requirement[:6] for requirement in lacking] == ["PyYAML"]


@pytest.mark.parametrize("shape", gpu_check.SHAPES)
def test_model_folder_has_a_text_for_every_id_and_no_weights(shape: str, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    gpu_check.make_model(tmp_path, gpu_check.SHAPES[shape])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "tokenizer.json", "tokenizer_config.json"}
    config = json.loads((tmp_path / "config.json").read_text())
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == config["vocab_size"]
    assert tokenizer.token_to_id("<|end|>") == config["eos_token_id"]
    assert tokenizer.decode([config["vocab_size"] - 1])
    assert tokenizer.decode(tokenizer.encode("Grüße, 你好").ids) == "Grüße, 你好"


def test_shape_is_that_of_qwen_2_5_7b(tmp_path: Path) -> None:
    from sweeper.estimate.memory_sizes import parameter_count
    from sweeper.models.read import facts_from_config

    facts = facts_from_config(dict(gpu_check.SHAPES["qwen2.5-7b"].config))
    assert parameter_count(facts) == pytest.approx(7.6e9, rel=0.01)


def test_a_torn_journal_line_is_left_out(tmp_path: Path) -> None:
    study = tmp_path / "studies" / gpu_check.STUDY
    study.mkdir(parents=True)
    whole = json.dumps(trial())
    (study / "trials.jsonl").write_text(f"{whole}\n{whole[:40]}")
    assert len(gpu_check.read_trials(tmp_path)) == 1


def test_an_interpreter_without_torch_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    done = check(tmp_path, "--tiny", PYTHON=str(bare / "bin" / "python"))
    assert done.returncode == 2
    assert "has no torch and no transformers" in done.stderr


def check(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", ROOT / "benchmarks" / "gpu_check.sh", *arguments],
        env={**os.environ, "CHECK_DIR": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.e2e
def test_the_whole_check_runs_on_a_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    done = check(tmp_path, "--tiny", PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr + done.stdout
    table = (tmp_path / "table.md").read_text()
    assert table in done.stdout
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    kinds = [row.split("|")[1].strip() for row in rows]
    assert kinds == ["none"] * 2 + ["static"] * 2 + ["continuous"] * 2
    # On a busy machine a level may be too uneven to count; exit code 0 says that not all were.
    assert all(row.split("|")[5].strip() != "-" for row in rows)
