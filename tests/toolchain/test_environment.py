"""A script's environment: with a stand-in for uv, and once with the real one and a real index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sweeper.toolchain import environment
from sweeper.toolchain.environment import NoEnvironment, cause_in, find_uv, script_python
from sweeper.toolchain.worker import EndKind, WorkerJob, run_worker

SCRIPT = """# /// script
# requires-python = ">=3.11"
# dependencies = [{dependencies}]
# ///
import worker_protocol

def main(worker):
    import six
    return {{"six": six.__version__, "file": six.__file__}}

worker_protocol.run(main)
"""

# It knows the four commands that are used; {sync} is what making an environment does.
FAKE_UV = """#!/bin/sh
case "$1" in
cache) echo {cache} ;;
python) echo {env}/bin/python ;;
sync)
  echo called >> {calls}
  {sync}
  mkdir -p {env}/bin; touch {env}/bin/python ;;
esac
"""


class FakeUv:
    """uv as it is told to behave, and what came of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.env = folder / "cache" / "environments" / "made"
        self.uv = folder / "uv"
        self.script = folder / "made.py"
        self.log = folder / "log"
        self.rewrite('"six"')
        self.does("true")
        monkeypatch.setattr(environment, "find_uv", lambda: str(self.uv))
        monkeypatch.setattr(environment, "pip_settings", dict)

    def rewrite(self, dependencies: str, after: str = "") -> None:
        self.script.write_text(SCRIPT.format(dependencies=dependencies) + after)

    def does(self, sync: str) -> None:
        self.uv.write_text(
            FAKE_UV.format(
                cache=self.folder / "cache", env=self.env, calls=self.folder / "calls", sync=sync
            )
        )
        self.uv.chmod(0o755)

    def make(self, timeout_s: float = 60.0) -> str | NoEnvironment:
        self.begun = False

        def begin() -> None:
            self.begun = True

        return script_python(self.script, log_path=self.log, timeout_s=timeout_s, begin=begin)

    @property
    def calls(self) -> int:
        calls = self.folder / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    @property
    def python(self) -> str:
        return str(self.env / "bin" / "python")

    @property
    def note(self) -> Path:
        (found,) = (self.folder / "cache" / "sweeper").glob("made-*.json")
        return found


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    return FakeUv(tmp_path, monkeypatch)


def test_made_once_and_anew_when_it_would_be_another(fake: FakeUv) -> None:
    assert fake.make() == fake.python
    assert fake.begun
    fake.rewrite('"six"', after="# the code is another, the environment is not\n")
    assert fake.make() == fake.python
    assert (fake.calls, fake.begun) == (1, False)
    fake.rewrite('"six", "attrs"')
    fake.make()
    assert (fake.calls, fake.begun) == (2, True)
    Path(fake.python).unlink()  # uv's cache was cleaned
    fake.make()
    assert fake.calls == 3


@pytest.mark.parametrize("note", ['{"making": "x"}', '{"making', "[1]"])
def test_what_a_making_left_that_broke_off_is_removed_first(fake: FakeUv, note: str) -> None:
    fake.make()
    fake.note.write_text(note)
    (fake.env / "half").touch()
    assert fake.make() == fake.python
    assert fake.calls == 2
    assert not (fake.env / "half").exists()


def test_only_an_environment_in_uvs_cache_is_ever_removed(fake: FakeUv) -> None:
    fake.make()
    fake.note.write_text('{"making": "x"}')
    fake.env = fake.folder / "the-users-own"
    fake.env.mkdir()
    (fake.env / "precious").touch()
    fake.does("true")
    fake.make()
    assert (fake.env / "precious").exists()


def test_a_failed_making_is_told_and_tried_again(fake: FakeUv) -> None:
    fake.does("echo 'error: Request failed' >&2; echo '  cause: Failed to fetch: x' >&2; exit 2")
    failed = fake.make()
    assert failed == NoEnvironment(
        "the environment of made.py could not be made: Request failed; Failed to fetch: x "
        "(connect to the network, or let UV_FIND_LINKS name a folder that holds the wheels; "
        "or name an interpreter that has the packages)"
    )
    assert "Failed to fetch" in fake.log.read_text()
    fake.does("true")
    assert fake.make() == fake.python


def test_of_an_appended_log_only_this_making_is_told(fake: FakeUv) -> None:
    fake.log.write_text("error: of yesterday\n")
    fake.does("exit 2")
    assert "uv ended with exit code 2" in str(fake.make())


def test_two_at_once_make_one(fake: FakeUv) -> None:
    fake.does("sleep 0.2")
    made: list[object] = []
    threads = [threading.Thread(target=lambda: made.append(fake.make())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [fake.python] * 3
    assert fake.calls == 1


def test_uv_holds_the_lock_itself_so_that_a_killed_tuner_does_not_free_it(fake: FakeUv) -> None:
    listing = fake.folder / "open-files"
    fake.does(f"ls -l /proc/$$/fd > {listing}")
    fake.make()
    assert str(fake.note) in listing.read_text()


def test_the_time_limit_holds_for_making_and_for_waiting(fake: FakeUv) -> None:
    fake.does(f"echo $$ > {fake.folder}/pid; sleep 600")
    begun = time.monotonic()
    assert "it was not ready within 1 s" in str(fake.make(timeout_s=0.9))
    assert not Path(f"/proc/{(fake.folder / 'pid').read_text().strip()}").exists()
    with fake.note.open("a+") as held:
        assert environment._lock(held)
        assert "another process has been making it" in str(fake.make(timeout_s=0.1))
    assert time.monotonic() - begun < 30


def test_a_cache_that_cannot_be_written_is_told(fake: FakeUv) -> None:
    (fake.folder / "cache").write_text("a file")
    failed = fake.make()
    assert isinstance(failed, NoEnvironment)
    assert "could not be made" in failed.message
    assert str(fake.folder / "cache") in failed.message


def test_a_uv_that_refuses_or_is_missing_is_told(
    fake: FakeUv, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.uv.write_text("#!/bin/sh\necho 'error: Permission denied' >&2; exit 2\n")
    assert "Permission denied (let UV_CACHE_DIR" in str(fake.make())
    fake.uv.chmod(0o644)
    assert "could not be made" in str(fake.make())
    monkeypatch.setattr(environment, "find_uv", lambda: None)
    assert "pip install uv" in str(fake.make())
    fake.script.unlink()
    assert isinstance(fake.make(), NoEnvironment)


def test_uv_is_found_beside_the_interpreter_and_then_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("venv", "path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "uv").touch(mode=0o755)
    monkeypatch.setattr(environment.sysconfig, "get_path", lambda _: str(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_uv() == str(tmp_path / "venv" / "uv")
    (tmp_path / "venv" / "uv").unlink()
    assert find_uv() == str(tmp_path / "path" / "uv")
    (tmp_path / "path" / "uv").unlink()
    assert find_uv() is None


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("", ""),
        ("Resolved 3 packages\nkilled\n", "killed"),
        (
            "Creating script environment at: /x\nerror: Request failed after 3 retries in 8.8s\n"
            "  cause: Failed to fetch: http://h/six/\n  cause: Connection refused (os error 111)\n",
            "Request failed after 3 retries in 8.8s; Failed to fetch: http://h/six/; "
            "Connection refused (os error 111)",
        ),
        (
            "error: an earlier one\nerror: Failed to fetch: `http://h/six/`\n"
            "  Caused by: dns error\n  Caused by: dns error\n",
            "Failed to fetch: `http://h/six/`; dns error",
        ),
        (
            "  \u00d7 No solution found when resolving script dependencies:\n"
            "  \u2570\u2500\u25b6 Because there is no version of six==99.0\n"
            "      we can conclude that it is unsatisfiable.\n",
            "No solution found when resolving script dependencies:; "
            "Because there is no version of six==99.0; we can conclude that it is unsatisfiable.",
        ),
    ],
)
def test_the_cause_is_taken_from_uvs_last_error(said: str, cause: str) -> None:
    assert cause_in(said) == cause


def test_real_uv_makes_a_real_environment_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Needs a package index: what the product cannot do without, this test does not skip."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("VIRTUAL_ENV", "/of/the/tuner")
    script = tmp_path / "made.py"
    script.write_text(SCRIPT.format(dependencies='"six==1.17.0"'))
    code = (
        "import pathlib, sys\n"
        "from sweeper.toolchain.environment import script_python\n"
        f"print(script_python(pathlib.Path({str(script)!r}), timeout_s=300, begin=lambda: None,"
        " log_path=pathlib.Path(sys.argv[1])))"
    )
    tuners = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / f"log{number}")],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for number in range(2)
    ]
    answers = {tuner.communicate()[0].strip() for tuner in tuners}
    assert len(answers) == 1, answers
    (python,) = answers
    assert Path(python).is_file(), python
    logs = [tmp_path / "log0", tmp_path / "log1"]
    assert sum("six==1.17.0" in log.read_text() for log in logs if log.exists()) == 1

    # From now on without network: what is there is used, what is not is told.
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    end = run_worker(WorkerJob(script, {}, tmp_path / "log", 60.0), print)
    assert (end.kind, end.result["six"]) == (EndKind.DONE, "1.17.0"), end
    assert Path(end.result["file"]).is_relative_to(Path(python).parents[1])
    script.write_text(SCRIPT.format(dependencies='"no-such-package-anywhere==1.0"'))
    events: list[object] = []
    end = run_worker(WorkerJob(script, {}, tmp_path / "log", 60.0), events.append)
    assert end.kind is EndKind.NO_ENVIRONMENT
    assert "no-such-package-anywhere" in end.message
    assert "connect to the network" in end.message
    assert events == [{"event": "phase", "name": "environment"}]
    assert end.environment_s > 0
    assert os.environ["VIRTUAL_ENV"] == "/of/the/tuner"


def test_what_real_uv_says_without_metadata_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(environment, "pip_settings", dict)
    script = tmp_path / "made.py"
    script.write_text("print()")
    failed = script_python(script, log_path=tmp_path / "log", timeout_s=60, begin=lambda: None)
    assert "PEP 723" in str(failed)
    assert json.loads(next((tmp_path / "cache" / "sweeper").iterdir()).read_text())["making"]
