"""An engine's log: private while it is written, redacted whole or not at all."""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweeper.engine import sealed_log
from sweeper.engine.sealed_log import create_log, seal
from sweeper.redaction import HIDDEN

TOKEN = "hf_" + "aB3dE" * 7


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_log_is_private_also_in_place_of_one_that_was_not(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("old")
    path.chmod(0o644)
    with create_log(path) as log:
        log.write(b"new")
    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o600


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "server.log"
    victim.write_text(f"precious {TOKEN}")
    path.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        create_log(path)
    assert not seal(path)
    assert victim.read_text() == f"precious {TOKEN}"


def test_secrets_go_and_every_other_byte_stays(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    rest = b"\xff\xfe not utf-8\r\n10%\r20%\r\nlast line without an end"
    with create_log(path) as log:
        log.write(f"401: {TOKEN}\n".encode() + rest)
    assert seal(path)
    assert path.read_bytes() == f"401: {HIDDEN}\n".encode() + rest
    assert mode_of(path) == 0o600
    assert not seal(path)
    assert [left.name for left in tmp_path.iterdir()] == ["server.log"]


def test_blocks_end_at_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_log, "_BLOCK_CHARS", 64)
    path = tmp_path / "server.log"
    lines = [f"line {n} {TOKEN if n % 3 == 0 else 'plain'} end" for n in range(200)]
    path.write_text("\n".join(lines))
    assert seal(path)
    assert path.read_text() == "\n".join(lines).replace(TOKEN, HIDDEN)


def test_nothing_to_seal_is_no_fault(tmp_path: Path) -> None:
    assert not seal(tmp_path / "absent.log")
    assert not seal(tmp_path)


def test_a_disk_that_refuses_leaves_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.log"
    path.write_text(TOKEN)

    def refuse(descriptor: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(sealed_log.os, "fsync", refuse)
    assert not seal(path)
    assert path.read_text() == TOKEN
    assert [left.name for left in tmp_path.iterdir()] == ["server.log"]


def test_a_kill_while_sealing_loses_no_line(tmp_path: Path) -> None:
    """The log is the raw one or the sealed one at every moment, whenever the sealer is killed."""
    path = tmp_path / "server.log"
    raw = "".join(f"line {n} {TOKEN}\n" for n in range(20_000))
    path.write_text(raw)
    script = "import sys; from pathlib import Path; from sweeper.engine.sealed_log import seal; "
    script += "seal(Path(sys.argv[1]))"
    sealer = subprocess.Popen([sys.executable, "-c", script, str(path)])
    while sealer.poll() is None and not list(tmp_path.glob(".server.log.*")):
        time.sleep(0.001)
    sealer.kill()
    sealer.wait()
    assert path.read_text() in {raw, raw.replace(TOKEN, HIDDEN)}
