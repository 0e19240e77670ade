"""Servers of ours: on loopback, with a key that is in no command line, and logs that keep quiet."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.local_http import Endpoint, call
from sweeper.engine.mock.engine import MockEngine
from sweeper.engine.ports import LOOPBACK
from sweeper.engine.protocol import EngineFacts, LaunchFailure, RunningServer
from sweeper.engine.served import Command, note_command
from sweeper.engine.transformers.engine import TransformersEngine
from sweeper.engine.vllm.engine import VllmEngine
from sweeper.redaction import HIDDEN, redact
from tests.engine.conftest import Bench
from tests.engine.test_serve import endpoint_of

TOKEN = "hf_" + "aB3dE" * 7
PATHS = ["/v1/models", "/metrics", "/server_info", "/", "/nothing", "/health/x", "//health"]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, Bench]]:
    bench = Bench(Path(tmp_path_factory.mktemp("launched")))
    with bench.engine().serve(bench.request()) as server:
        yield server, bench


def test_only_the_health_check_is_for_everybody(launched: tuple[RunningServer, Bench]) -> None:
    endpoint = endpoint_of(launched[0])
    for key in (
        "",
        "wrong",
        endpoint.api_key[:-1],
        endpoint.api_key + "x",
        "ключ".encode().decode("latin-1"),
    ):
        stranger = replace(endpoint, api_key=key)
        assert call(stranger, "/health", timeout_s=5).status == 200
        assert {call(stranger, path, timeout_s=5).status for path in PATHS} == {401}
        posts = ("/v1/completions", "/tokenize", "/health/../v1/completions")
        assert {call(stranger, path, {}, timeout_s=5).status for path in posts} == {401}
    assert call(endpoint, "/v1/models", timeout_s=5).status == 200


def test_it_listens_on_loopback_only(launched: tuple[RunningServer, Bench]) -> None:
    listening = [
        entry.laddr.ip
        for entry in psutil.Process(launched[0].pid).net_connections(kind="inet")
        if entry.status == psutil.CONN_LISTEN
    ]
    assert listening == [LOOPBACK]


def test_the_key_is_random_long_and_in_no_command_line_or_file(
    launched: tuple[RunningServer, Bench], tmp_path: Path
) -> None:
    server, bench = launched
    command = " ".join(psutil.Process(server.pid).cmdline())
    files = [path.read_bytes() for path in bench.folder.rglob("*") if path.is_file()]
    assert server.api_key not in command
    assert not [content for content in files if server.api_key.encode() in content]
    assert len(server.api_key) > 32
    assert redact(f"GET / key {server.api_key}!") == f"GET / key {HIDDEN}!"
    assert server.api_key not in repr(server)


def test_what_is_private_is_private(launched: tuple[RunningServer, Bench]) -> None:
    server, bench = launched
    for path in (server.log_path, bench.folder / "launch.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_log_is_sealed_when_its_launch_ends(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    text = (
        f"line 1\n401 Client Error, headers: Authorization: Bearer {TOKEN}\nRuntimeError: {TOKEN}"
    )
    fault = {"die_at": "start", "exit_code": 1, "log_text": text}
    with pytest.raises(LaunchFailure), bench.engine(faults=[fault]).serve(bench.request()):
        pass
    log = bench.request().run_dir / "server.log"
    assert TOKEN not in log.read_text()
    assert f"RuntimeError: {HIDDEN}" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


ENGINES = {
    "vllm": VllmEngine,
    "transformers": TransformersEngine,
    "mock": MockEngine,
}


@pytest.mark.parametrize("name", ["vllm", "transformers", "mock"])
def test_every_served_engine_binds_to_loopback_and_gets_its_key_by_the_environment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sweeper.engine.vllm import engine as vllm_engine

    class Installed:
        python, server_module = "/usr/bin/python3", "vllm.entrypoints.openai.api_server"
        facts = EngineFacts("vllm", "1", "vllm", "cpu")

    monkeypatch.setattr(vllm_engine, "probe", lambda *_, **__: Installed())
    engine = ENGINES[name](EngineConfig(name=name), cache_dir=tmp_path)
    request = Bench(tmp_path).request({})
    request.run_dir.mkdir()
    command = engine.command(request, Endpoint(4321, "m", "sk-sweeper-0123456789abcdefgh"))
    words = list(command.argv)
    assert words[words.index("--host") + 1] == LOOPBACK
    assert "sk-sweeper-0123456789abcdefgh" not in " ".join(words)
    assert "sk-sweeper-0123456789abcdefgh" in command.env.values()


@pytest.mark.parametrize("flag", ["api_key", "api-key", "host", "port", "uds", "served_model_name"])
def test_a_flag_of_the_launch_itself_is_refused(flag: str, tmp_path: Path) -> None:
    from sweeper.errors import ConfigError

    for engine in (VllmEngine, MockEngine):
        with pytest.raises(ConfigError, match="set by every launch"):
            engine(EngineConfig(args={flag: "x"}), cache_dir=tmp_path)


def test_the_note_of_a_launch_hides_secrets_only(tmp_path: Path) -> None:
    env = {"HF_TOKEN": "very-secret", "TOKENIZERS_PARALLELISM": "false", "X": f"a {TOKEN}"}
    argv = ("server", "--x", f"--y={TOKEN}", "https://u:pw@host/x")
    note_command(tmp_path, Command(argv, env))
    note: dict[str, Any] = json.loads((tmp_path / "argv.json").read_text())
    assert note["env"] == {
        "HF_TOKEN": HIDDEN,
        "TOKENIZERS_PARALLELISM": "false",
        "X": f"a {HIDDEN}",
    }
    assert note["argv"] == ["server", "--x", f"--y={HIDDEN}", f"https://u:{HIDDEN}@host/x"]


def test_the_login_at_mlflow_is_not_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    from sweeper.engine.process import inherited_environment

    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pw")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    inherited = inherited_environment()
    assert "MLFLOW_TRACKING_PASSWORD" not in inherited
    assert inherited["HF_TOKEN"] == TOKEN
