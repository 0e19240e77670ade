"""A measured outcome that the study's own disk refused: kept elsewhere, and taken up again.

append fails ──► the reserve is given back, once more ──► fails ──► rescue file, the study stops
next run of the study ──► does the line follow on this very journal? ──► append, file removed
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sweeper.tracking.paths import sync_folder


@dataclass(frozen=True)
class Mark:
    """A journal as it was at some moment: so many bytes, with this digest."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> Mark:
        return cls(len(content), hashlib.sha256(content).hexdigest())

    def is_start_of(self, content: bytes) -> bool:
        """True if a journal is this one, perhaps grown since."""
        return len(content) >= self.size_bytes and self == Mark.of(content[: self.size_bytes])


@dataclass(frozen=True)
class RescuedLine:
    """One outcome, and what proves where it belongs.

    Attributes:
        study: folder of the study.
        identity: hash of the study's identity.
        after: the journal it follows on.
        outcome: the line.
    """

    study: str
    identity: str
    after: Mark
    outcome: dict[str, Any]


class Rescue:
    """Where the lines of one study are kept when its folder cannot take them.

    Args:
        study: folder of the study.
        identity: hash of its identity.
        folders: tried in this order; None means the user's cache, then the temporary folder.
    """

    def __init__(self, study: Path, identity: str, folders: Sequence[Path] | None = None) -> None:
        self._study = study
        self._identity = identity
        digest = hashlib.sha256(str(study).encode()).hexdigest()[:12]
        places = default_folders() if folders is None else folders
        self.paths = [folder / f"{study.name}-{digest}.jsonl" for folder in places]

    def keep(self, outcome: dict[str, Any], after: Mark) -> Path:
        """Write one line where it can be written. Raises OSError if that is nowhere."""
        line = RescuedLine(str(self._study), self._identity, after, outcome)
        data = json.dumps(asdict(line), ensure_ascii=False).encode() + b"\n"
        problem: OSError | None = None
        for path in self.paths:
            try:
                _append(path, data)
            except OSError as error:
                problem = error
            else:
                return path
        raise problem or OSError("there is no folder to keep it in")

    def lines(self) -> list[tuple[Path, RescuedLine]]:
        """What is kept of this study, each with its file; what is damaged is left out."""
        found = []
        for path in self.paths:
            try:
                content = path.read_bytes()
            except OSError:
                continue
            lines = [_read(line) for line in content.splitlines()]
            found += [(path, line) for line in lines if line is not None and self._is_ours(line)]
        return found

    def drop(self) -> None:
        """Remove the files: the journal has their lines."""
        for path in self.paths:
            path.unlink(missing_ok=True)

    def _is_ours(self, line: RescuedLine) -> bool:
        return line.study == str(self._study) and line.identity == self._identity


def default_folders() -> list[Path]:
    """The user's cache folder, and the temporary one for when the home is on the full disk too."""
    named = os.environ.get("SWEEPER_CACHE_DIR")
    xdg = os.environ.get("XDG_CACHE_HOME")
    cache = Path(named) if named else (Path(xdg) if xdg else Path("~/.cache")) / "sweeper"
    temporary = Path(tempfile.gettempdir()) / f"sweeper-{os.getuid()}"
    return [cache.expanduser() / "rescued", temporary / "rescued"]


def _append(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(
        path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    sync_folder(path.parent)


def _read(line: bytes) -> RescuedLine | None:
    try:
        data = json.loads(line)
        return RescuedLine(data["study"], data["identity"], Mark(**data["after"]), data["outcome"])
    except (ValueError, TypeError, KeyError):
        return None
