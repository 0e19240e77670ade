"""`trials.jsonl`: one line a trial, appended and synced; the source of truth of a study.

A line that was being written when the machine died is torn. It is always the last one, it is
ignored when read, and the next append puts it aside into ``trials.jsonl.torn``.

A line that the disk refuses is written into the reserve's place, or kept elsewhere (`rescue`): what
was measured is not lost because it could not be written here.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from sweeper.engine.family import uninterrupted
from sweeper.errors import JournalError
from sweeper.tracking.paths import sync_folder
from sweeper.tracking.rescue import Mark, Rescue
from sweeper.tracking.room import give_back
from sweeper.trial.outcome import SCHEMA_VERSION, TrialOutcome

_WRITE_REMEDY = (
    "free space on the disk or make the file writable; what is recorded so far is kept, "
    "and the same command goes on from there"
)


_FULL = {errno.ENOSPC, errno.EDQUOT}


class Journal:
    """Append-only record of a study's trials.

    Args:
        path: the file; it is made by the first append.
        reserve: a file that is given up when the disk is full; None means there is none.
        rescue: where a line goes that cannot be written at all; None means nowhere.
    """

    def __init__(
        self, path: Path, *, reserve: Path | None = None, rescue: Rescue | None = None
    ) -> None:
        self.path = path
        self._reserve = reserve
        self._rescue = rescue
        self._digest = hashlib.sha256()
        self._mark = Mark.of(b"")
        self._left: tuple[int, int, int, int] | None = None

    @property
    def torn_path(self) -> Path:
        """Where torn lines are put aside."""
        return self.path.with_name(f"{self.path.name}.torn")

    def append(self, outcome: TrialOutcome) -> None:
        """Add one line and wait until it is on the disk.

        Raises:
            ValueError: a number is NaN or infinite (a bug); nothing is written.
            TypeError: a value has no place in JSON (a bug); nothing is written.
            JournalError: the file cannot be written; the message says where the line is kept.
        """
        data = outcome.to_dict()
        check_plain(data, "outcome")
        text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        line = text.encode("utf-8") + b"\n"
        # Whoever wants to end the study may do so once the line is written, or known not to be.
        with uninterrupted():
            try:
                self._append(line)
            except OSError as error:
                raise self._refused(data, error) from error

    def take_up(self) -> list[TrialOutcome]:
        """Append what an earlier run could only keep elsewhere, if it follows on this journal.

        Returns:
            The outcomes that were taken up. What does not belong here stays where it is.

        Raises:
            JournalError: the journal cannot be read or written.
        """
        if self._rescue is None:
            return []
        taken: list[TrialOutcome] = []
        known = {_key(outcome) for outcome in self.read()}
        lines = self._rescue.lines()
        for _, line in lines:
            outcome = self._outcome(line.outcome, 0)
            if _key(outcome) in known:
                continue
            if not line.after.is_start_of(self._content()):
                return taken
            self.append(outcome)
            known.add(_key(outcome))
            taken.append(outcome)
        if lines:
            self._rescue.drop()
        return taken

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

    def _append(self, line: bytes) -> None:
        """Write a line; where the disk is full, once more in the place of the reserve.

        A file that is as this journal left it need not be read again: a study of ten thousand
        trials would spend its time on that.
        """
        as_left, self._left = self._left is not None and self._left == self._state(), None
        if as_left:
            self._write_or_make_room(line, repair=False)
            self._digest.update(line)
            self._mark = Mark(self._mark.size_bytes + len(line), self._digest.hexdigest())
        else:
            if not self._mark.is_start_of(self._content()):
                raise OSError(errno.ESTALE, "it is not the file that this study has written so far")
            self._write_or_make_room(line, repair=True)
            self._remember(self._content())
        self._left = self._state()

    def _write_or_make_room(self, line: bytes, *, repair: bool) -> None:
        try:
            if repair:
                self._repair_tail()
            self._write(line)
        except OSError as error:
            if error.errno not in _FULL or self._reserve is None:
                raise
            give_back(self._reserve)
            self._repair_tail()
            self._write(line)

    def _remember(self, content: bytes) -> None:
        """Know the journal by this content."""
        self._digest = hashlib.sha256(content)
        self._mark = Mark(len(content), self._digest.hexdigest())

    def _state(self) -> tuple[int, int, int, int] | None:
        """Which file it is and when it was last written; None if there is none."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _refused(self, data: dict[str, Any], error: OSError) -> JournalError:
        """Keep a line elsewhere, and say so."""
        text = f"cannot append to {self.path} ({error.strerror or error})"
        if self._rescue is None:
            return JournalError(text, _WRITE_REMEDY)
        try:
            kept = self._rescue.keep(data, self._mark)
        except OSError as problem:
            nowhere = f"nor anywhere else ({problem.strerror or problem}): trial {data['number']} "
            return JournalError(f"{text}, {nowhere}is lost", _WRITE_REMEDY)
        return JournalError(
            f"{text}; trial {data['number']} was measured and is kept in {kept}",
            f"{_WRITE_REMEDY}, this trial included",
        )

    def _lines(self) -> list[bytes]:
        try:
            content = self._content()
        except OSError as error:
            raise JournalError(
                f"cannot read {self.path} ({error.strerror or error})", "make the file readable"
            ) from error
        end = content.rfind(b"\n") + 1
        self._remember(content[:end])
        return content.removesuffix(b"\n").split(b"\n") if content else []

    def _content(self) -> bytes:
        """The whole file, empty if there is none. Raises OSError."""
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""

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
            before = os.fstat(handle.fileno()).st_size
            try:
                remaining = memoryview(data)
                while remaining:
                    remaining = remaining[handle.write(remaining) :]
                os.fsync(handle.fileno())
            except OSError:
                # Half a line would stand before the same line written whole.
                with suppress(OSError):
                    os.ftruncate(handle.fileno(), before)
                raise
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


def _key(outcome: TrialOutcome) -> tuple[int, int]:
    return outcome.number, outcome.attempt


def _decode(line: bytes) -> dict[str, Any] | None:
    """The line as a mapping, or None if it is not a whole one."""
    try:
        data = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
