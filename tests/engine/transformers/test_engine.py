"""The engine from outside: what it finds, starts, reads back, and how it says why it cannot."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.comparison import ineffective
from sweeper.engine.local_http import Endpoint, call
from sweeper.engine.protocol import LaunchFailure, LaunchRequest
from sweeper.engine.registry import create
from sweeper.engine.transformers.engine import SETTINGS_FILE, TransformersEngine
from sweeper.engine.transformers.facts import probe
from sweeper.engine.transformers.telling import API_KEY_VARIABLE, tell, told
from sweeper.errors import ConfigError, EngineError
from sweeper.verdicts import Phase, Verdict
from tests.engine.transformers.conftest import MODES, Launcher, Served, endpoint_of, make_tokenizer

ENDPOINT = Endpoint(8000, "tiny", "secret-key")


def engine(tmp_path: Path, **cfg: Any) -> TransformersEngine:
    made = create(EngineConfig(name="transformers", **cfg), cache_dir=tmp_path)
    assert isinstance(made, TransformersEngine)
    return made


def request(tmp_path: Path, parameters: dict[str, Any], **changes: Any) -> LaunchRequest:
    fields: dict[str, Any] = {
        "model_path": "org/model",
        "parameters": parameters,
        "run_dir": tmp_path,
        "served_name": "tiny",
        "start_timeout_s": 60.0,
        "token": "t",
    }
    return LaunchRequest(**{**fields, **changes})


def settings(tmp_path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((tmp_path / SETTINGS_FILE).read_text())
    return read


def test_facts_name_versions_and_device(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    facts = engine(tmp_path, options={"device": "cpu"}).facts()
    assert (facts.name, facts.version) == ("transformers", transformers.__version__)
    assert facts.device == "cpu"
    assert facts.predicted is False
    assert {"torch", "tokenizers", "python"} <= set(facts.details)


def test_an_interpreter_without_the_library_has_a_remedy(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    with pytest.raises(EngineError, match="transformers and torch not installed") as caught:
        probe(str(tmp_path / "v" / "bin" / "python"))
    assert "engine.python=" in caught.value.remedy


def test_an_interpreter_that_does_not_run_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be asked"):
        probe(str(tmp_path / "no-python"))


@pytest.mark.parametrize(
    "cfg",
    [
        {"options": {"random_weight": True}},
        {"options": {"device": "tpu"}},
        {"args": {"port": 8000}},
    ],
)
def test_wrong_configuration_is_found_before_any_launch(
    cfg: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError):
        engine(tmp_path, **cfg)


def test_command_carries_the_deployment_in_a_file_and_the_key_in_the_environment(
    tmp_path: Path,
) -> None:
    made = engine(tmp_path, args={"max_model_len": 128}, env={"A": "1"})
    asked = {"flag.batching": "static", "max_num_seqs": 4, "env.B": 2}
    command = made.command(request(tmp_path, asked, dtype="float16"), ENDPOINT)
    flags = {"max_model_len": 128, "batching": "static", "max_num_seqs": 4, "dtype": "float16"}
    assert settings(tmp_path)["flags"] == command.flags == flags
    assert command.argv[:3] == (sys.executable, "-m", "sweeper.engine.transformers.server")
    assert "8000" in command.argv
    assert "secret-key" not in " ".join(command.argv) + json.dumps(settings(tmp_path))
    assert command.env[API_KEY_VARIABLE] == "secret-key"
    assert (command.env["A"], command.env["B"]) == ("1", "2")


def test_a_deployment_wins_over_what_every_launch_has(tmp_path: Path) -> None:
    made = engine(tmp_path, args={"dtype": "float32", "batching": "static"})
    command = made.command(request(tmp_path, {"dtype": "bfloat16"}, dtype="float16"), ENDPOINT)
    assert command.flags == {"dtype": "bfloat16", "batching": "static"}


def test_another_interpreter_sees_this_package_and_nothing_beside_it(tmp_path: Path) -> None:
    made = engine(tmp_path, python="/usr/bin/some-python")
    command = made.command(request(tmp_path, {}), ENDPOINT)
    folder = Path(command.env["PYTHONPATH"])
    assert [path.name for path in folder.iterdir()] == ["sweeper"]
    assert (folder / "sweeper" / "engine" / "transformers" / "server.py").is_file()


def test_the_server_imports_nothing_that_only_the_tuner_has() -> None:
    script = (
        "import sys, sweeper.engine.transformers.server, sweeper.engine.transformers.continuous;"
        "found = {name.split('.')[0] for name in sys.modules};"
        "print(*sorted(found - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) <= {"__main__", "sweeper"}


def test_start_command_is_the_deployment(tmp_path: Path) -> None:
    made = engine(tmp_path, args={"dtype": "float32"}, env={"A": "1"})
    flags, env = made.start_command({"flag.batching": "continuous", "env.B": True}, "/models/x")
    assert flags == {"model": "/models/x", "dtype": "float32", "batching": "continuous"}
    assert env == {"A": "1", "B": "1"}


def test_what_the_log_tells_is_read_back_even_if_it_is_torn() -> None:
    log = "noise\n" + tell("loaded", model_load_s=1.5) + "\n" + tell("loaded", x=1)[:-4]
    assert told(log, "loaded") == {"model_load_s": 1.5}
    assert told(log, "other") == {}


@pytest.mark.parametrize("mode", MODES)
def test_all_that_was_asked_is_in_effect(mode: str, served: Served) -> None:
    server = served(mode)
    asked = {name.removeprefix("flag."): value for name, value in MODES[mode].items()}
    assert ineffective(asked, server.effective_args) == {}
    assert set(asked) <= set(server.effective_args)
    assert server.effective_args["dtype"] == "float32"
    assert server.effective_args["random_weights"] is False
    assert server.learnt["model_load_s"] > 0  # type: ignore[operator]


def failed(launcher: Launcher, parameters: dict[str, Any], **cfg: Any) -> Any:
    changes = cfg.pop("changes", {})
    with (
        pytest.raises(LaunchFailure) as caught,
        launcher.engine(**cfg).serve(launcher.request(parameters, **changes)),
    ):
        pass
    return caught.value.diagnosis


def test_a_combination_that_cannot_work_is_refused_before_torch_is_loaded(
    launcher: Launcher,
) -> None:
    found = failed(launcher, {"max_num_seqs": 8})
    assert (found.verdict, found.phase) == (Verdict.INFEASIBLE_CONFIG, Phase.START)
    assert "max_num_seqs needs batching=static" in found.cause


def test_a_context_beyond_the_models_own_is_refused(launcher: Launcher) -> None:
    found = failed(launcher, {"max_model_len": 100_000})
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert "above the model's own 256 positions" in found.cause


def test_a_folder_without_weights_says_so(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((launcher.model / "config.json").read_text())
    make_tokenizer(tmp_path)
    found = failed(launcher, {}, changes={"model_path": str(tmp_path)})
    assert found.verdict is Verdict.INFEASIBLE_CONFIG
    assert found.learnt["rule"] == "weights_missing"


def test_a_taken_port_is_left_for_another(launcher: Launcher) -> None:
    made = launcher.engine()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [taken.getsockname()[1]]
        free = made.pick_port
        made.pick_port = lambda: ports.pop() if ports else free()
        with made.serve(launcher.request({"dtype": "float32"})) as server:
            assert server.is_alive()
            assert ports == []


def test_random_weights_serve_without_any_on_disk_and_are_marked(
    launcher: Launcher, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text((launcher.model / "config.json").read_text())
    make_tokenizer(tmp_path)
    made = launcher.engine(options={"random_weights": True})
    with made.serve(launcher.request({"dtype": "bfloat16"}, model_path=str(tmp_path))) as server:
        assert server.effective_args["random_weights"] is True
        assert server.effective_args["dtype"] == "bfloat16"
        assert "means nothing" in str(server.learnt["random_weights"])
        body = {"model": "tiny", "prompt": [5, 6], "max_tokens": 1, "prompt_logprobs": 0}
        reply = call(endpoint_of(server), "/v1/completions", body, timeout_s=30)
        assert reply.status == 400
        assert "weights are random" in reply.text
    assert not list(tmp_path.glob("*.safetensors"))
