"""`trials.jsonl`: one line a trial, appended and synced; the source of truth of a study.

A line that was being written when the machine died is torn. It is always the last one, it is
ignored when read, and the next append puts it aside into ``trials.jsonl.torn``.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from sweeper.errors import JournalError
from sweeper.tracking.paths import sync_folder
from sweeper.trial.outcome import SCHEMA_VERSION, TrialOutcome

_WRITE_REMEDY = (
    "free space on the disk or make the file writable; what is recorded so far is kept, "
    "and the same command goes on from there"
)


class Journal:
    """Append-only record of a study's trials.

    Args:
        path: the file; it is made by the first append.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def torn_path(self) -> Path:
        """Where torn lines are put aside."""
        return self.path.with_name(f"{self.path.name}.torn")

    def append(self, outcome: TrialOutcome) -> None:
        """Add one line and wait until it is on the disk.

        Raises:
            ValueError: a number is NaN or infinite (a bug); nothing is written.
            TypeError: a value has no place in JSON (a bug); nothing is written.
            JournalError: the file cannot be written.
        """
        data = outcome.to_dict()
        check_plain(data, "outcome")
        line = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        try:
            self._repair_tail()
            self._write(line.encode("utf-8") + b"\n")
        except OSError as error:
            raise JournalError(
                f"cannot append to {self.path} ({error.strerror or error})", _WRITE_REMEDY
            ) from error

    def read(self) -> list[TrialOutcome]:
        """All recorded outcomes, in order; a torn last line is left out.

        Raises:
            JournalError: a line before the last is corrupt, or a newer sweeper wrote it.
        """
        lines = self._lines()
        outcomes = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            data = _decode(line)
            if data is None and number == len(lines):
                continue
            outcomes.append(self._outcome(data, number))
        return outcomes

    def _lines(self) -> list[bytes]:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JournalError(
                f"cannot read {self.path} ({error.strerror or error})", "make the file readable"
            ) from error
        return content.removesuffix(b"\n").split(b"\n") if content else []

    def _outcome(self, data: dict[str, Any] | None, number: int) -> TrialOutcome:
        if data is None:
            raise self._corrupt(number, "it is not JSON")
        version = data.get("schema_version")
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise JournalError(
                f"{self.path}, line {number}: schema_version {version!r} is not known; this "
                f"sweeper reads versions up to {SCHEMA_VERSION}",
                "use the sweeper that wrote the study, or start another study with study=NAME",
            )
        try:
            return TrialOutcome.from_dict(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._corrupt(number, f"it is not a trial ({error})") from error

    def _corrupt(self, number: int, what: str) -> JournalError:
        return JournalError(
            f"{self.path}, line {number} cannot be read: {what}",
            f"keep a copy of the file, delete line {number} (its trial is lost, no other), "
            "and run the same command again",
        )

    def _repair_tail(self) -> None:
        """Put a torn last line aside, or end a whole one that lacks its line break."""
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        if not content:
            return
        start = content.removesuffix(b"\n").rfind(b"\n") + 1
        tail = content[start:]
        if _decode(tail) is None and tail.strip():
            with self.torn_path.open("ab") as aside:
                aside.write(tail.removesuffix(b"\n") + b"\n")
                aside.flush()
                os.fsync(aside.fileno())
            os.truncate(self.path, start)
        elif not content.endswith(b"\n"):
            self._write(b"\n")

    def _write(self, data: bytes) -> None:
        is_new = not self.path.exists()
        with self.path.open("ab", buffering=0) as handle:
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[handle.write(remaining) :]
            os.fsync(handle.fileno())
        if is_new:
            sync_folder(self.path.parent)


def check_plain(value: object, where: str) -> None:
    """Refuse what JSON cannot carry honestly, naming the field.

    Raises:
        ValueError: a float is NaN or infinite.
        TypeError: a value or a key is of a type JSON does not have.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where}: key {key!r} is not a string")
            check_plain(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_plain(item, f"{where}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}; a missing measurement must be left out")
    elif value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"{where} is a {type(value).__name__}, which JSON does not have")


def _decode(line: bytes) -> dict[str, Any] | None:
    """The line as a mapping, or None if it is not a whole one."""
    try:
        data = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
