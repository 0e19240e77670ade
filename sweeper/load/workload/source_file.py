"""Reading a workload's file: its text, hash and name, each reported with the place of a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from sweeper.config.schema import WorkloadConfig
from sweeper.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True)
class SourceFile:
    """A file as it was read.

    Attributes:
        path: as the user gave it.
        text: its content, without a byte-order mark.
        sha256: of its bytes.
    """

    path: str
    text: str
    sha256: str

    @property
    def name(self) -> str:
        """Without its folder, which is of no matter to a measurement."""
        return Path(self.path).name

    def lines(self) -> list[tuple[int, str]]:
        """(number from 1, line) of every line that is not blank."""
        numbered = enumerate(self.text.split("\n"), start=1)
        return [(number, line) for number, line in numbered if line.strip()]

    def fault(self, line: int | None, what: str, expected: str) -> ConfigError:
        """An error that names the file, the line (None for all of it) and what belongs there."""
        place = self.path if line is None else f"{self.path}, line {line}"
        return ConfigError(f"workload.path={place} {what}", expected)


def read_source(path: str) -> SourceFile:
    """A text file. Raises ConfigError if it cannot be read, is not UTF-8, or is empty."""
    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(
            f"workload.path={path} cannot be read: {error.strerror}", "give a readable file"
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"workload.path={path}, line {line} is not UTF-8 text",
            "convert the file to UTF-8; packed files are not unpacked",
        ) from error
    if not text.strip():
        raise ConfigError(f"workload.path={path} is empty", "give a file with one request a line")
    return SourceFile(path, text, sha256(data).hexdigest())


class Remembered(Generic[T]):
    """A reading of a workload's file, kept until the file or the workload changes.

    The same file is asked for by the check of lengths, by the plan and by every trial.

    Args:
        read: what reads it anew.
    """

    def __init__(self, read: Callable[[WorkloadConfig], T]) -> None:
        self._read = read
        self._kept: tuple[object, T] | None = None

    def __call__(self, cfg: WorkloadConfig) -> T:
        path = Path(str(cfg.path)).expanduser().resolve()
        stat = path.stat() if path.exists() else None
        key = (repr(cfg), path, stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino))
        if self._kept is None or self._kept[0] != key:
            self._kept = (key, self._read(cfg))
        return self._kept[1]
