"""An engine's log: private while it is written, without secrets once its writers have ended.

An engine may echo what it was given: a token in an error page, an argument in its summary. Only it
knows when, so that its own file is made for the tuner's user alone, and rewritten when nothing
writes to it any more.

    created (0600) ──the engine writes──▶ raw ──seal──▶ redacted copy beside it ──rename──▶ sealed

A tuner that is killed leaves the raw log, whole and private, or the sealed one: never a part.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from sweeper.redaction import redact

PRIVATE = 0o600
_BLOCK_CHARS = 1 << 20


def create_log(path: Path) -> IO[bytes]:
    """A new file that only this user may read, also in place of an earlier one.

    Raises:
        OSError: it cannot be made, or the path is a link (which may lead anywhere).
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE)
    try:
        os.fchmod(descriptor, PRIVATE)  # an earlier file keeps the mode that it had
        return os.fdopen(descriptor, "wb")
    except BaseException:
        os.close(descriptor)
        raise


def seal(path: Path) -> bool:
    """Take the secrets out of a log that nobody writes to any more. True if there were any.

    A disk that refuses leaves the log as it was: private, and not lost.
    """
    if path.is_symlink() or not path.is_file():
        return False
    copy: Path | None = None
    try:
        # Nearly every log has none, and a long one should not need its space twice to show it.
        if all(redact(block) == block for block in _blocks(path)):
            return False
        with tempfile.NamedTemporaryFile(
            "wb", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            copy = Path(file.name)
            for block in _blocks(path):
                file.write(redact(block).encode("utf-8", errors="surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        copy.replace(path)
        return True
    except OSError:
        return False
    finally:
        if copy is not None:
            with suppress(OSError):
                copy.unlink(missing_ok=True)


def _blocks(path: Path) -> Iterator[str]:
    """A log block by block, each ended at a line; what is no UTF-8 comes back byte for byte."""
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as source:
        while block := source.read(_BLOCK_CHARS):
            yield block + source.readline(_BLOCK_CHARS)
