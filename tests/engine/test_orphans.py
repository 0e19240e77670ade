"""A tuner that was killed: the next one ends what it left, and nothing else."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.engine import orphans, procfs
from sweeper.engine.family import Family
from tests.engine.conftest import Bench, living_with, wait_for

TUNER = """
import sys, time
from pathlib import Path
from sweeper.config.schema import EngineConfig
from sweeper.engine.protocol import LaunchRequest
from sweeper.engine.registry import create
folder, token = Path(sys.argv[1]), sys.argv[2]
engine = create(
    EngineConfig(name="mock", options={"faults": {"child": "session", "hang_at": "stop"}}),
    cache_dir=folder,
)
request = LaunchRequest(
    "mock", {}, folder / "run", "trial", 20.0, token, record_path=folder / "launch.json"
)
with engine.serve(request):
    print("serving", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "TERM_PATIENCE_S", 0.3)


@pytest.fixture
def killed_tuner(bench: Bench) -> Bench:
    """The bench of a tuner that was killed while it served."""
    command = [sys.executable, "-c", TUNER, str(bench.folder), bench.token]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as tuner:
        assert tuner.stdout is not None
        assert tuner.stdout.readline() == b"serving\n"
        tuner.kill()
    assert len(bench.left()) == 2
    return bench


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else, with a token of its own."""
    env = {**os.environ, procfs.TOKEN_VARIABLE: f"other-{secrets.token_hex(8)}"}
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command, env=env) as process:
        yield process
        process.kill()


def test_orphans_are_ended_by_their_record(
    killed_tuner: Bench, stranger: subprocess.Popen[bytes]
) -> None:
    alive = killed_tuner.left()
    assert orphans.reap(killed_tuner.folder / "launch.json") == sorted(alive)
    assert not killed_tuner.left()
    assert not (killed_tuner.folder / "launch.json").exists()
    assert stranger.poll() is None


def test_record_of_another_boot_names_no_pids(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    process = procfs.read(stranger.pid)
    assert process is not None
    record = tmp_path / "launch.json"
    note = {
        "token": "gone-token-1234",
        "boot_id": "another",
        "leader": list(process.identity),
        "processes": [list(process.identity)],
    }
    record.write_text(json.dumps(note))
    assert orphans.reap(record) == []
    assert stranger.poll() is None


def test_pid_that_was_given_to_another_process_is_not_touched(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    process = procfs.read(stranger.pid)
    assert process is not None
    pid, ticks = process.identity
    note = {
        "token": "gone-token-1234",
        "boot_id": procfs.boot_id(),
        "leader": [pid, ticks - 1],
        "processes": [[pid, ticks - 1]],
    }
    (tmp_path / "launch.json").write_text(json.dumps(note))
    assert orphans.reap(tmp_path / "launch.json") == []
    assert stranger.poll() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"token": 1}'])
def test_unreadable_record_ends_nothing_and_goes(tmp_path: Path, text: str) -> None:
    record = tmp_path / "launch.json"
    record.write_text(text)
    assert orphans.reap(record) == []
    assert not record.exists()


def test_no_record_is_nothing_to_do(tmp_path: Path) -> None:
    assert orphans.reap(tmp_path / "launch.json") == []


def test_worker_that_hid_its_environment_is_found_by_its_session(bench: Bench) -> None:
    hidden = "import os, sys; os.execve(sys.executable, [sys.executable, '-c', sys.argv[1]], {})"
    sleeper = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    leader = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {hidden!r}, {sleeper!r}])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    tuner = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from sweeper.engine.process import ProcessGroup, inherited_environment\n"
        "folder = Path(sys.argv[1])\n"
        f"group = ProcessGroup([sys.executable, '-c', {leader!r}], env=inherited_environment(),\n"
        "    log_path=folder / 'log', token=sys.argv[2], record_paths=[folder / 'launch.json'])\n"
        "group.start()\n"
        "while not (folder / 'log').read_text().strip(): time.sleep(0.02)\n"
        "time.sleep(0.3)\n"
        "group.members()\n"
        "print('noted', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", tuner, str(bench.folder), bench.token]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"noted\n"
        process.kill()
    child = int((bench.folder / "log").read_text())
    (leader_pid,) = living_with(bench.token)
    os.kill(leader_pid, signal.SIGKILL)
    wait_for(lambda: not living_with(bench.token))
    assert procfs.launch_token(child) is None
    assert orphans.reap(bench.folder / "launch.json") == [child]
    process_now = procfs.read(child)
    assert process_now is None or process_now.is_zombie


def test_the_note_tells_whether_its_tuner_lives(tmp_path: Path) -> None:
    record = orphans.LaunchRecord(tmp_path / "launch.json")
    assert not record.tuner_lives(), "there is no note"
    record.write(Family("token-of-mine"))
    assert not record.tuner_lives(), "it is this process"
    note = json.loads(record.path.read_text())
    parent = procfs.read(os.getppid())
    assert parent is not None
    for tuner, boot, lives in (
        (list(parent.identity), procfs.boot_id(), True),
        ([parent.identity.pid, parent.identity.start_ticks - 1], procfs.boot_id(), False),
        (list(parent.identity), "another", False),
        (None, procfs.boot_id(), False),
    ):
        record.path.write_text(json.dumps({**note, "tuner": tuner, "boot_id": boot}))
        assert record.tuner_lives() is lives


def test_what_hid_all_else_is_known_by_its_log(tmp_path: Path) -> None:
    """Its starter is dead, and session, name and environment are its own: it still writes there."""
    log_path = tmp_path / "server.log"
    script = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
    script += "'import time; time.sleep(60)'], env={}, start_new_session=True)"
    with log_path.open("wb") as log:
        subprocess.run([sys.executable, "-c", script], stdout=log, stderr=log, check=True)
    assert not Family("nobody").living()
    record = orphans.LaunchRecord(tmp_path / "launch.json")
    record.write(Family("nobody", log_path=log_path))
    (ended,) = orphans.reap(tmp_path / "launch.json")
    assert not any(p.identity.pid == ended and not p.is_zombie for p in procfs.table().values())


def test_what_a_killed_tuner_left_of_a_note_goes_with_it(tmp_path: Path) -> None:
    record = orphans.LaunchRecord(tmp_path / "launch.json")
    record.write(Family("nobody"))
    (tmp_path / ".launch.json.x1y2").write_text('{"tok')
    assert orphans.reap(tmp_path / "launch.json") == []
    assert list(tmp_path.iterdir()) == []
