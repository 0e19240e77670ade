"""`engine=openai`: a whole study of a server that this program did not start, as a command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import LaunchRequest, RunningServer
from sweeper.engine.registry import create
from tests.verbs.conftest import Run

SHORT = [
    "engine=openai",
    "load.concurrency=[1,2]",
    "load.min_requests=4",
    "load.requests_per_stream=2",
    "workload.input_tokens=16",
    "workload.output_tokens=8",
    "tracking=none",
    "study=there",
]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    """A server that answers to a key, which the command finds in its environment."""
    place = tmp_path.parent / f"{tmp_path.name}-server"
    engine = create(EngineConfig(name="mock", stop_timeout_s=2), cache_dir=place)
    request = LaunchRequest("mock", {"enforce_eager": True}, place, "llama", 30.0, f"t-{place}")
    with engine.serve(request) as server:
        monkeypatch.setenv("SWEEPER_API_KEY", server.api_key)
        yield server


def test_it_is_measured_as_it_is_and_its_key_stays_secret(
    sweeper: Run, there: RunningServer, tmp_path: Path
) -> None:
    done = sweeper(*SHORT, f"engine.base_url={there.base_url}/v1")
    # Whether a point passes its gates depends on how busy this machine is; that it was driven not.
    assert done.returncode in {0, 1}, done.stderr
    assert "Traceback" not in done.stderr
    study = tmp_path / "studies" / "there"
    trial = json.loads((study / "trials.jsonl").read_text().splitlines()[0])
    assert trial["deployment"] == {}
    assert [point["n"] for point in trial["points"]] == [4, 4]
    manifest = trial["manifest"]
    assert manifest["model"]["name"] == "llama"
    assert manifest["hardware"]["kind"] == "remote"
    assert "memory_gib" not in manifest["hardware"]
    assert not {"checkpoint", "precision", "quantization"} & set(manifest), "nobody knows them"
    assert manifest["effective_args"]["num_kv_blocks"] > 0
    assert there.is_alive()
    assert not (study / "recommended").exists()
    export = sweeper("export", "study=there")
    assert export.returncode == 2
    assert "no export target for engine=openai" in export.stderr
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in written if there.api_key.encode() in file.read_bytes()]
    assert there.api_key not in done.stdout + done.stderr

    other = sweeper(*SHORT, f"engine.base_url=http://localhost:{there.base_url.split(':')[2]}")
    assert other.returncode == 2
    assert "engine.base_url" in other.stderr


def test_nobody_there(sweeper: Run, tmp_path: Path) -> None:
    done = sweeper(*SHORT, "engine.base_url=http://127.0.0.1:9")
    assert done.returncode == 1
    assert "127.0.0.1:9 refused the connection" in done.stderr
    assert "remedy:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "studies").exists()


def test_the_wrong_key(sweeper: Run, there: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPER_API_KEY", "wrong-key-1234")
    done = sweeper(*SHORT, f"engine.base_url={there.base_url}")
    assert done.returncode == 1
    assert "SWEEPER_API_KEY" in done.stderr
    assert "wrong-key-1234" not in done.stdout + done.stderr
