"""Perplexity on a text: pieces, windows, and the paired change."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import QualityConfig
from sweeper.load.address import ServerAddress
from sweeper.quality.asking import QualityUnavailableError
from sweeper.quality.part import PartJob, PartResult
from sweeper.quality.perplexity import WINDOW_TOKENS, found, load_text, measure, pieces
from tests.load.stub import Dials, running


def job(server: ServerAddress, folder: Path, kept: Any = None, **quality: Any) -> PartJob:
    config = QualityConfig(kind="perplexity", request_timeout_s=5.0, **quality)
    return PartJob(server, config, kept, "m", None, False, folder, lambda _: None)


def reference(folder: Path, **quality: Any) -> PartResult:
    with running() as stub:
        return measure(job(stub.address, folder, **quality))


def test_the_reference_keeps_windows_that_every_candidate_reads(tmp_path: Path) -> None:
    made = reference(tmp_path)
    assert made.found["windows"] >= 5 and made.found["change_nats"] == 0
    assert made.found["perplexity"] == pytest.approx(math.exp(made.found["nats_per_token"]))
    assert max(map(len, made.kept["windows"])) <= WINDOW_TOKENS
    assert made.kept["longest_tokens"] == 1 + max(map(len, made.kept["windows"]))
    with running(Dials(logprob_shift=-0.5)) as stub:
        worse = measure(job(stub.address, tmp_path, made.kept))
        assert all(isinstance(body["prompt"], list) for body in stub.bodies), "text is sent once"
    assert worse.found["tokens"] == made.found["tokens"]
    assert worse.found["change_nats"] == pytest.approx(0.5)
    assert worse.found["change_se_nats"] == pytest.approx(0.0, abs=1e-9)
    assert worse.found["nats_per_token"] == pytest.approx(made.found["nats_per_token"] + 0.5)


def test_no_more_tokens_are_read_than_asked_for(tmp_path: Path) -> None:
    short = reference(tmp_path, text_tokens=600)
    assert sum(map(len, short.kept["windows"])) <= 600


def test_a_text_of_ones_own_is_read_and_a_bad_one_is_named(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("one two three four\n" * 200)
    assert reference(tmp_path, text_path=str(mine)).found["tokens"] > 500
    mine.write_text("too short")
    with pytest.raises(QualityUnavailableError, match="fewer than two windows"):
        reference(tmp_path, text_path=str(mine))
    mine.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(QualityUnavailableError, match="cannot be read"):
        load_text(str(mine))


def test_the_text_that_comes_with_it_is_of_three_kinds() -> None:
    text = load_text(None)
    assert 1000 < len(text.split()) < 2500
    assert sum("\u4e00" <= sign <= "\u9fff" for sign in text) > 400
    assert "def " in text and "SELECT" in text


@given(st.text(alphabet="ab c\nö水", max_size=300), st.integers(8, 40))
def test_pieces_fit_and_lose_nothing_but_blanks(text: str, limit: int) -> None:
    cut = list(pieces(text, limit))
    assert all(len(piece.encode()) <= limit and piece.strip() for piece in cut)
    assert "".join("".join(cut).split()) == "".join(text.split())


WINDOWS = st.lists(st.lists(st.floats(-9, 0), min_size=2, max_size=5), min_size=2, max_size=6)


@given(WINDOWS, st.floats(-2, 2))
def test_a_constant_shift_is_found_exactly(own: list[list[float]], shift: float) -> None:
    figures = found([[value + shift for value in window] for window in own], own)
    assert figures["change_nats"] == pytest.approx(-shift, abs=1e-9)
    assert figures["change_se_nats"] == pytest.approx(0.0, abs=1e-9)
