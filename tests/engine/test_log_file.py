"""Reading a log of any size: short ones whole, of long ones what speaks of an error."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest

from sweeper.engine import log_file
from sweeper.engine.log_file import condense, read_log
from sweeper.engine.vllm.diagnosis import diagnose_vllm
from sweeper.verdicts import Phase

LINE = b"(APIServer pid=1) INFO 11-29 20:44:38 [loggers.py:335] Engine 000: Running: 3 reqs\n"
OOM = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Windows a thousand times smaller, and a size that is far beyond them."""
    for name, size in [("HEAD_BYTES", 4000), ("TAIL_BYTES", 4000), ("BLOCK_BYTES", 1000)]:
        monkeypatch.setattr(log_file, name, size)
    monkeypatch.setattr(log_file, "MIDDLE_BYTES", 9000)
    return 400_000


def filled(size: int) -> bytes:
    return LINE * (size // len(LINE))


def test_a_short_log_is_kept_whole(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(filled(20_000) + b"Speicherplatz f\xfcr alle\n")
    assert read_log(log) == (filled(20_000) + b"Speicherplatz f\xef\xbf\xbdr alle\n").decode()


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    assert "cannot be read" in read_log(tmp_path / "absent.log")
    assert "cannot be read" in read_log(tmp_path)


def test_a_log_up_to_the_windows_loses_nothing(small: int) -> None:
    for size in (0, 1, 3999, 4000, 4001, 7999, 8000):
        text = bytes(97 + n % 26 for n in range(size))
        assert condense(io.BytesIO(text)) == text.decode()


@pytest.mark.parametrize("share", [0.0, 0.011, 0.3, 0.5, 0.9, 0.995, 1.0])
def test_a_cause_is_found_wherever_it_stands(small: int, share: float) -> None:
    lines = [LINE] * (small // len(LINE))
    lines.insert(int(share * len(lines)), b"  File x\n    raise OOM\n" + OOM)
    text = condense(io.BytesIO(b"".join(lines)))
    assert len(text) < 20_000
    assert diagnose_vllm(text, Phase.LOAD, 1).learnt["rule"] == "device_out_of_memory"


def test_a_cause_on_the_seam_of_two_blocks_is_found(small: int) -> None:
    for offset in range(0, 1000, 7):
        data = b"x" * 99 + b"\n"
        text = condense(io.BytesIO(data * 200 + b"." * offset + b"\n" + OOM + data * 200))
        assert OOM.decode() in text, offset


def test_a_million_like_errors_leave_room_for_the_one_that_matters(small: int) -> None:
    noise = b"".join(
        b"ERROR 11-29 20:44:38 [x.py:7] Error in request %d\n" % n for n in range(9000)
    )
    text = condense(io.BytesIO(filled(9000) + noise + OOM + noise + filled(9000)))
    assert OOM.decode() in text
    assert len(text) < 30_000


def test_a_pipe_that_hands_out_little_at_a_time_will_do(small: int) -> None:
    class Pipe(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 313) if size and size > 0 else size)

    data = filled(100_000) + OOM + filled(100_000)
    assert condense(Pipe(data)) == condense(io.BytesIO(data))


def test_memory_is_bounded_for_a_file_without_line_ends() -> None:
    class Endless(io.RawIOBase):
        left = 60_000_000

        def read(self, size: int = -1) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return b"Error" * (size // 5) + b"E" * (size % 5)

    tracemalloc.start()
    try:
        text = condense(Endless())  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(text) < 11_000_000
    assert peak < 60_000_000
