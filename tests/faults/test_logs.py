"""Logs that no engine should write: a gigabyte, bytes of every value, another language's errors."""

from __future__ import annotations

import resource

import pytest

from sweeper.verdicts import Phase, Verdict
from tests.faults.cells import DISK_FULL, NO_CACHE, OOM
from tests.faults.conftest import Bench

LOG_MIB = 1024
WITHIN_S = 300.0
"""Ten times what it takes where nothing else runs."""
MORE_MIB = 600
"""What reading such a log may add to the tuner's own memory: far less than the log."""


def test_a_log_of_one_gigabyte_is_explained(bench: Bench) -> None:
    """The cause is its last line, and reading it does not take its size in memory."""
    before_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    try:
        ended = bench.run(
            {"die_at": "load", "log_mib": LOG_MIB, "log_text": OOM}, within_s=WITHIN_S
        )
        assert (bench.folder / "run" / "server.log").stat().st_size > LOG_MIB << 20
    finally:
        (bench.folder / "run" / "server.log").unlink(missing_ok=True)
    after_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    outcome = ended.outcome
    assert (outcome.verdict, outcome.phase) == (Verdict.CRASH_UNDER_LOAD, Phase.LOAD)
    assert "out of memory" in outcome.cause
    assert len(outcome.evidence) < 10_000
    assert after_mib - before_mib < MORE_MIB


def test_a_cause_before_forty_megabytes_of_log_is_found(bench: Bench) -> None:
    """It hangs after the cause has been told, and goes on writing until it is ended."""
    ended = bench.run(
        {"garbage_at": "ready", "garbage": "error_in_200", "log_text": NO_CACHE},
        {"die_at": "stop", "log_mib": 40},
    )
    assert ended.outcome.verdict is Verdict.CRASH_UNDER_LOAD
    assert "cache blocks" in ended.outcome.cause


LOCALES = {
    "de": ("OSError: [Errno 98] Die Adresse wird bereits verwendet", "utf-8", Verdict.INFRA),
    "zh": ("OSError: [Errno 98] 地址已在使用", "gbk", Verdict.INFRA),
    "de-latin1": (
        "OSError: [Errno 28] Kein Platz auf dem Gerät",
        "latin-1",
        Verdict.INFRA,
    ),
    "fr": ("OSError: [Errno 28] Aucun espace sur le périphérique", "utf-8", Verdict.INFRA),
    "ru": ("OSError: [Errno 28] Нет места на устройстве", "koi8-r", Verdict.INFRA),
    "beside-latin1": (f"Fehler beim Öffnen\n{NO_CACHE}", "latin-1", Verdict.CAPACITY),
    "beside-gbk": (f"内存不足\n{OOM}", "gbk", Verdict.CAPACITY),
    "beside-sjis": (f"メモリ不足\n{OOM}", "shift-jis", Verdict.CAPACITY),
}


@pytest.mark.parametrize(("text", "encoding", "verdict"), LOCALES.values(), ids=LOCALES)
def test_another_locale_hides_no_cause(
    bench: Bench, text: str, encoding: str, verdict: Verdict
) -> None:
    ended = bench.run({"die_at": "start", "log_text": text, "log_encoding": encoding})
    assert ended.outcome.verdict is verdict, ended.outcome.cause
    assert ended.outcome.cause
    assert "\n" not in ended.outcome.cause
    assert ended.outcome.evidence


def test_bytes_of_every_value_hide_no_cause(bench: Bench) -> None:
    ended = bench.run({"die_at": "start", "log_binary": True, "log_text": DISK_FULL})
    assert ended.outcome.verdict is Verdict.INFRA
    assert "No space left" in ended.outcome.cause
    shown = ended.outcome.cause + ended.outcome.evidence
    assert not [char for char in shown if ord(char) < 32 and char not in "\n\t"], "no control bytes"
