"""What an installed vLLM tells of its flags: asked once, and kept by version.

Its ``--help`` takes as long as an import of vLLM, half a minute on a small machine, so the answer
is kept on disk. It belongs to one version in one interpreter: anything else is asked anew, and so
is what stands in a damaged file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sweeper.engine.flag_check import Flag
from sweeper.engine.process import ProcessGroup, inherited_environment
from sweeper.engine.vllm.cli import is_whole, parse_help
from sweeper.engine.vllm.facts import VllmInstallation
from sweeper.engine.vllm.source import ENUM_NAMES, read_engine_fields, read_values
from sweeper.errors import EngineError

SCHEMA = 1
"""Raised when what is read from a help text changes: older answers are then asked anew."""

HELP_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 2.0
PAUSE_S = 0.05
# Newer versions list groups unless all flags are asked for; older ones refuse the word.
HELP_FLAGS = ("--help=all", "--help")


@dataclass(frozen=True)
class Told:
    """Flags and values of one installation.

    Attributes:
        flags: from its help, in its order.
        values: flag → values that it takes, where the source says so and the help does not.
        engine_fields: names that its `LLM` class takes; empty if not known.
    """

    flags: tuple[Flag, ...]
    values: Mapping[str, tuple[str, ...]]
    engine_fields: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of speculative decoding methods, empty if not known."""
        flag = next((flag for flag in self.flags if flag.name == "spec_method"), None)
        if flag is not None and flag.choices:
            return flag.choices
        return self.values.get("spec_method", ())

    def with_values(self) -> tuple[Flag, ...]:
        """The flags with the values that only the source names."""
        return tuple(
            replace(flag, choices=self.values[flag.name], any_case=flag.name in ENUM_NAMES)
            if flag.name in self.values and not flag.choices
            else flag
            for flag in self.flags
        )


class NotToldError(Exception):
    """The installation does not tell its flags; why, in a few words."""


def known(
    installation: VllmInstallation,
    folder: Path,
    env: Mapping[str, str],
    progress: Callable[[str], None] | None,
) -> tuple[Told | None, str | None]:
    """(what an installation tells, what to say if it does not), from the cache where it is there.

    Args:
        installation: what is asked.
        folder: of the answers.
        env: added to the inherited environment.
        progress: told what takes time; None takes no time, and what is not in the cache is not
            known.
    """
    told = cached(installation, folder)
    if told is not None or progress is None:
        return told, None
    version = installation.facts.version
    progress(f"asking vLLM {version} for its flags; once for a version, up to a minute")
    try:
        return ask(installation, folder, env), None
    except NotToldError as problem:
        return None, f"flags are not checked before the first launch: vLLM's --help: {problem}"


def cached(installation: VllmInstallation, folder: Path) -> Told | None:
    """What is known of this installation, None if nothing is, or the file is damaged."""
    key = _key(installation)
    try:
        note = json.loads(_path(folder, key).read_text(encoding="utf-8"))
        if note["key"] != key or note["sha256"] != _digest(note["told"]):
            return None
        return _from_json(note["told"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def ask(
    installation: VllmInstallation,
    folder: Path,
    env: Mapping[str, str],
    timeout_s: float = HELP_TIMEOUT_S,
) -> Told:
    """Ask the installation, and keep the answer where `cached` finds it.

    Args:
        installation: what is asked.
        folder: of the answers; one that cannot be written only costs the next study the time.
        env: added to the inherited environment.
        timeout_s: for the whole answer.

    Raises:
        NotToldError: it fails, hangs, or answers something else.
    """
    flags = _ask_flags(installation, env, timeout_s)
    root = Path(installation.root) if installation.root else None
    told = Told(
        flags,
        read_values(root) if root is not None else {},
        read_engine_fields(root) if root is not None else (),
    )
    _keep(folder, _key(installation), asdict(told))
    return told


def _ask_flags(
    installation: VllmInstallation, env: Mapping[str, str], timeout_s: float
) -> tuple[Flag, ...]:
    deadline = time.monotonic() + timeout_s
    with tempfile.TemporaryDirectory(prefix="sweeper-help-") as folder:
        log = Path(folder) / "help.txt"
        for word in HELP_FLAGS:
            _run([installation.python, "-m", installation.server_module, word], env, log, deadline)
            text = log.read_text(encoding="utf-8", errors="replace")
            flags = parse_help(text)
            if is_whole(flags):
                return flags
            if "usage:" not in text:  # it never came to read its command line
                break
        lines = [line for line in text.splitlines() if line.strip()]
        raise NotToldError(f"it lists no flags; its last line: {lines[-1] if lines else '(none)'}")


def _run(argv: list[str], env: Mapping[str, str], log: Path, deadline: float) -> None:
    """Run to the end, whatever the exit code. Raises NotToldError if that takes too long."""
    # Colours and a wide terminal would change the layout.
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHON_COLORS": "0", "VLLM_NO_USAGE_STATS": "1"}
    group = ProcessGroup(
        argv,
        env={**inherited_environment(), **env, **plain},
        log_path=log,
        token=f"sweeper-help-{secrets.token_hex(8)}",
        stop_timeout_s=STOP_TIMEOUT_S,
    )
    try:
        with group:
            while group.poll() is None:
                if time.monotonic() >= deadline:
                    raise NotToldError("it did not answer in time")
                time.sleep(PAUSE_S)
    except EngineError as problem:
        raise NotToldError(problem.message) from problem


def _key(installation: VllmInstallation) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "distribution": installation.facts.distribution,
        "version": installation.facts.version,
        "python": str(Path(installation.python).absolute()),
        "root": installation.root,
        "stamp": installation.stamp,
    }


def _path(folder: Path, key: Mapping[str, Any]) -> Path:
    version = re.sub(r"[^\w.+-]", "_", str(key["version"]))
    return folder / f"{key['distribution']}-{version}-{_digest(key)[:12]}.json"


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _from_json(told: Mapping[str, Any]) -> Told:
    flags = tuple(_flag(flag) for flag in told["flags"])
    values = {name: tuple(words) for name, words in told["values"].items()}
    return Told(flags, values, tuple(told["engine_fields"]))


def _flag(told: Mapping[str, Any]) -> Flag:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in told.items()
    }
    return Flag(**fields)


def _keep(folder: Path, key: dict[str, Any], told: dict[str, Any]) -> None:
    plain = json.loads(json.dumps(told))
    note = {"key": key, "sha256": _digest(plain), "told": plain}
    temporary: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".flags-")
        temporary = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(note, file)
        temporary.replace(_path(folder, key))
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
