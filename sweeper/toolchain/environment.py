"""A script's own environment, made by uv from its PEP 723 metadata, once.

What was made is noted in uv's cache, where the environment itself lies: for a note that fits, uv is
not asked again, so that a worker starts without network and always with the same packages. The note
is the lock too; uv inherits it, so that it stays locked when the tuner dies before uv has ended.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sweeper.redaction import shown
from sweeper.toolchain.process import Process
from sweeper.toolchain.sources import pip_settings, uv_environment

_QUICK_S = 60.0
"""For what uv answers at once."""
_POLL_S = 0.05
_CAUSE_CHARS = 500
_OTHER_WAY = "or name an interpreter that has the packages"
# Older versions of uv draw a tree of causes.
_FRAME = " \u00d7\u251c\u2570\u2500\u25b6\u2502"
_ERRORS = ("error:", "\u00d7")
# What uv's own words call for, first match wins.
_REMEDIES = (
    (("No space left", "Disk quota"), "free disk space: uv's cache takes several GB"),
    (
        ("No solution found", "was not found in the package registry", "has no wheels"),
        "its pins cannot be met with this Python and these package sources: "
        "see UV_INDEX and UV_FIND_LINKS",
    ),
    (
        ("fetch", "sending request", "dns error", "onnect", "network", "offline"),
        "connect to the network, or let UV_FIND_LINKS name a folder that holds the wheels",
    ),
    (("ermission denied", "Read-only"), "let UV_CACHE_DIR name a folder that can be written"),
)


@dataclass(frozen=True)
class NoEnvironment:
    """Why there is none, and what helps, in one line."""

    message: str


class _RefusedError(Exception):
    """Ends the making; its text is the message."""


def find_uv() -> str | None:
    """uv beside this interpreter, where it is installed with sweeper; else on PATH."""
    scripts = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    beside = (folder / "uv" for folder in scripts)
    return next((str(path) for path in beside if path.is_file()), None) or shutil.which("uv")


def script_python(
    script: Path, *, log_path: Path, timeout_s: float, begin: Callable[[], None]
) -> str | NoEnvironment:
    """Interpreter of the script's environment, which is made if it is not there.

    Args:
        script: Python file with PEP 723 metadata.
        log_path: what uv says; appended to.
        timeout_s: for waiting for another tuner that makes it, and for making it.
        begin: called before something that takes long.
    """
    deadline = time.monotonic() + timeout_s
    try:
        uv = _Uv(script, log_path)
        with uv.locked(deadline) as note:
            before = _read(note)
            digest = _digest(script)
            if before.get("digest") == digest and Path(before["python"]).is_file():
                return str(before["python"])
            begin()
            if "making" in before:
                uv.remove()
            _write(note, {"making": digest})
            uv.sync(note, deadline, timeout_s)
            python = uv.python()
            _write(note, {"digest": digest, "python": python})
            return python
    except _RefusedError as refused:
        return NoEnvironment(str(refused))


class _Uv:
    """uv for one script. Everything raises `_RefusedError` with a message for the user."""

    def __init__(self, script: Path, log_path: Path) -> None:
        found = find_uv()
        if found is None:
            raise _RefusedError(
                f"uv was not found beside {sys.executable} nor on PATH: "
                f"install it (pip install uv), {_OTHER_WAY}"
            )
        self._uv = found
        self._script = script.resolve()
        self._log_path = log_path
        self._env = uv_environment(os.environ, {}, sys.executable)

    def python(self) -> str:
        """Interpreter of the environment, which must be there: else uv names another one."""
        return self._ask("python", "find", "--script", str(self._script))

    @contextmanager
    def locked(self, deadline: float) -> Iterator[IO[str]]:
        """The script's note, which nobody else writes meanwhile."""
        folder = self._cache() / "sweeper"
        # By the script's path alone, as uv names the environment itself.
        name = hashlib.sha256(str(self._script).encode()).hexdigest()[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            note = (folder / f"{self._script.stem}-{name}.json").open("a+", encoding="utf-8")
        except OSError as error:
            raise self._failed(str(error)) from error
        with note:
            while not _lock(note):
                if time.monotonic() > deadline:
                    raise self._failed("another process has been making it for too long")
                time.sleep(_POLL_S)
            yield note

    def remove(self) -> None:
        """Remove what a making that broke off has left.

        A package that was written halfway would be taken for whole.
        """
        folder = Path(self.python()).parent.parent
        # Where there is no environment yet, uv names the interpreter that it would take.
        if folder.is_relative_to(self._cache()):
            shutil.rmtree(folder, ignore_errors=True)

    def sync(self, note: IO[str], deadline: float, timeout_s: float) -> None:
        """Make the environment what the script asks for."""
        command = [self._uv, "sync", "--script", str(self._script)]
        env = uv_environment(os.environ, pip_settings(), sys.executable)
        begun = self._log_path.stat().st_size if self._log_path.exists() else 0
        try:
            with Process(
                command, env=env, log_path=self._log_path, pass_fds=[note.fileno()]
            ) as process:
                while not process.has_exited():
                    if time.monotonic() > deadline:
                        raise self._failed(f"it was not ready within {timeout_s:.0f} s")
                    time.sleep(_POLL_S)
        except OSError as error:
            raise self._failed(str(error)) from error
        if process.exit_code != 0:
            said = self._log_path.read_bytes()[begun:].decode(errors="replace")
            raise self._failed(cause_in(said) or f"uv ended with exit code {process.exit_code}")

    def _cache(self) -> Path:
        return Path(self._ask("cache", "dir"))

    def _ask(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [self._uv, *arguments],
                capture_output=True,
                text=True,
                env=self._env,
                timeout=_QUICK_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._failed(str(error)) from error
        if done.returncode != 0:
            raise self._failed(cause_in(done.stderr))
        return done.stdout.strip()

    def _failed(self, cause: str) -> _RefusedError:
        told = " ".join(shown(cause).split())[:_CAUSE_CHARS]
        remedies = [remedy for needles, remedy in _REMEDIES if any(n in told for n in needles)]
        remedy = f"{remedies[0]}; {_OTHER_WAY}" if remedies else f"see {self._log_path}"
        return _RefusedError(
            f"the environment of {self._script.name} could not be made: {told} ({remedy})"
        )


def cause_in(said: str) -> str:
    """The last error in what uv printed, its causes joined into one line; "" if it said nothing."""
    lines = [line.strip(_FRAME) for line in said.splitlines()]
    begins = [n for n, line in enumerate(said.splitlines()) if line.lstrip().startswith(_ERRORS)]
    if not begins:
        return next((line for line in reversed(lines) if line), "")
    words = (_without_label(line) for line in lines[begins[-1] :])
    return "; ".join(dict.fromkeys(word for word in words if word))


def _without_label(line: str) -> str:
    for label in ("error:", "cause:", "Caused by:"):
        line = line.removeprefix(label)
    return line.strip()


def _digest(script: Path) -> str:
    """Of all that decides about the environment: the script's metadata and the interpreter."""
    try:
        lines = script.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise _RefusedError(f"{script} cannot be read: {error}") from error
    begin = next((n for n, line in enumerate(lines) if line.rstrip() == "# /// script"), None)
    metadata: list[str] = []
    for line in lines[begin + 1 :] if begin is not None else ():
        if line.rstrip() == "# ///" or not line.startswith("#"):
            break
        metadata.append(line)
    text = "\n".join((*metadata, sys.version, sys.base_prefix))
    return hashlib.sha256(text.encode()).hexdigest()


def _lock(note: IO[str]) -> bool:
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(note: IO[str]) -> dict[str, Any]:
    note.seek(0)
    try:
        content = json.loads(note.read() or "{}")
    except ValueError:  # written halfway when the machine went down
        return {"making": ""}
    return content if isinstance(content, dict) else {"making": ""}


def _write(note: IO[str], content: dict[str, Any]) -> None:
    try:
        note.seek(0)
        note.truncate()
        json.dump(content, note)
        note.flush()
    except OSError as error:
        raise _RefusedError(f"uv's cache cannot be written: {error}; free disk space") from error
