"""What became of flags and words that a version of vLLM does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.engine.flag_check import Rename
from sweeper.engine.vllm.cli import parse_help
from sweeper.engine.vllm.renames import _SYNONYMS, GONE, gone_flags, renamed
from sweeper.engine.vllm.versions import is_between, release_of

FLAGS_032 = parse_help((Path(__file__).parent / "data" / "help_0_32_cpu.txt").read_text())
NAMES_032 = {name for flag in FLAGS_032 for name in (flag.name, *flag.aliases)}
METHODS_032 = ("awq", "fp8", "fp8_per_tensor", "int8_per_channel_weight_only", "inc")
METHODS_011 = ("awq", "fp8", "gguf", "gptq")


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("0.32.0", (0, 32, 0)),
        ("0.32.0+cpu", (0, 32, 0)),
        ("v0.8.5.post1", (0, 8, 5)),
        ("0.11.0rc2.dev133+g1234", (0, 11, 0)),
        ("0.27.2rc0", (0, 27, 2)),
        ("1.0", (1, 0)),
        ("0.1.dev1", None),
        ("0.1.dev1+g79bb395ee.d20260101", None),
        ("dev", None),
        ("", None),
    ],
)
def test_versions(version: str, release: tuple[int, ...] | None) -> None:
    assert release_of(version) == release


def test_a_build_without_a_number_is_the_newest() -> None:
    assert is_between("0.1.dev1", (0, 30), None)
    assert not is_between("0.1.dev1", None, (0, 20))
    assert is_between("0.30.0", (0, 30), None)
    assert not is_between("0.29.9", (0, 30), None)


def test_a_flag_that_is_there_is_not_called_gone() -> None:
    assert not set(GONE) & NAMES_032


def test_a_dated_removal_says_who_says_so() -> None:
    assert all(gone.source for gone in GONE.values() if gone.since is not None)


def test_what_replaces_a_flag_is_there() -> None:
    uses = [word for gone in GONE.values() for word in gone.use.split() if word.startswith("--")]
    assert uses
    for word in uses:
        name = word.removeprefix("--").removeprefix("no-").replace("-", "_")
        assert name in NAMES_032, word


def test_a_removal_is_dated_only_where_it_has_happened() -> None:
    late = gone_flags("vLLM 0.32.0", "0.32.0")["swap_space"]
    assert late.cause == "--swap-space was removed in vLLM 0.18, and this is vLLM 0.32.0"
    assert "nothing replaces it" in late.remedy
    early = gone_flags("vLLM 0.8.0", "0.8.0")["swap_space"]
    assert "0.18" not in early.cause
    logs = gone_flags("vLLM 0.32.0", "0.32.0")["disable_log_requests"]
    assert "--no-enable-log-requests" in logs.remedy
    assert "enable_log_requests: false" in logs.remedy


@pytest.mark.parametrize(
    ("word", "version", "methods", "given"),
    [
        ("fp8", "0.32.0+cpu", METHODS_032, "fp8_per_tensor"),
        ("fp8", "0.1.dev1", METHODS_032, "fp8_per_tensor"),
        ("fp8", "0.32.0", (), "fp8_per_tensor"),
        ("fp8", "0.11.0rc2.dev133+g1234", METHODS_011, None),
        ("fp8_per_tensor", "0.11.0", METHODS_011, "fp8"),
        ("fp8_per_tensor", "0.11.0", (), "fp8"),
        ("fp8_per_tensor", "0.32.0", METHODS_032, None),
        ("fp8_per_tensor", "0.32.0", (), None),
        ("int8", "0.32.0", METHODS_032, "int8_per_channel_weight_only"),
        ("int8", "0.11.0", METHODS_011, None),
        ("auto-round", "0.32.0", METHODS_032, "inc"),
        ("awq", "0.32.0", METHODS_032, None),
        # A version that has changed a word and lacks the new one is not guessed at.
        ("fp8", "0.32.0", ("awq", "fp8"), None),
    ],
)
def test_quantization_by_version(
    word: str, version: str, methods: tuple[str, ...], given: str | None
) -> None:
    found = renamed("quantization", word, version, methods)
    assert (found.given if found else None) == given


def test_kv_cache_words_are_swapped_only_where_one_is_missing() -> None:
    assert renamed("kv_cache_dtype", "fp8_e4m3", "0.4.0", ("auto", "fp8")) == Rename(
        "kv_cache_dtype", "fp8_e4m3", "fp8"
    )
    assert renamed("kv_cache_dtype", "fp8_e4m3", "0.32.0", ("auto", "fp8", "fp8_e4m3")) is None
    assert renamed("kv_cache_dtype", "fp8", "0.32.0", ()) is None


def test_no_word_is_renamed_twice() -> None:
    """The engine's word must be final, or a second launch would be sent something else."""
    for entry in _SYNONYMS:
        known = (entry.given,)
        for version in ("0.11.0", "0.32.0", "0.1.dev1"):
            first = renamed(entry.parameter, entry.asked, version, known)
            if first is not None:
                assert renamed(entry.parameter, first.given, version, known) is None
