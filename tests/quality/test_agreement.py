"""Agreement against a stub whose model is known."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.errors import StudyError
from sweeper.quality.agreement import (
    AT_ONCE,
    BrokenOutputError,
    QualityUnavailableError,
    compare,
    own_agreement,
    score,
    write_reference,
)
from sweeper.quality.reference import (
    Reference,
    ReferenceItem,
    TokenScores,
    load_reference,
    save_reference,
)
from sweeper.quality.suite import load_suite, suite_hash
from tests.load.stub import Dials, running

SUITE = load_suite(6)


def reference(dials: Dials | None = None) -> Reference:
    with running(dials) as stub:
        return write_reference(stub.address, SUITE, tokens=8, timeout_s=5.0)


def test_the_reference_agrees_with_itself() -> None:
    with running() as stub:
        made = write_reference(stub.address, SUITE, tokens=8, timeout_s=5.0)
        again = score(stub.address, made, timeout_s=5.0)
    assert stub.max_in_flight <= AT_ONCE
    assert made.suite == suite_hash(SUITE) and made.tokens == 48
    assert [item.id for item in made.items] == [prompt.id for prompt in SUITE]
    assert again == own_agreement(made)
    assert (again.agreement, again.loglik_change.value, again.tokens) == (1.0, 0.0, 48)
    assert 0 < again.agreement_se < 0.05


def test_text_is_sent_once_and_only_token_ids_after_that() -> None:
    with running() as stub:
        made = write_reference(stub.address, SUITE, tokens=8, timeout_s=5.0)
        texts = [body for body in stub.bodies if isinstance(body["prompt"], str)]
        score(stub.address, made, timeout_s=5.0)
    scored = stub.bodies[-6:]
    assert len(texts) == 6
    assert all("min_tokens" not in body and body["ignore_eos"] for body in texts)
    assert all(body["prompt_logprobs"] == 0 and body["max_tokens"] == 1 for body in scored)
    assert sorted(body["prompt"] for body in scored) == sorted(
        [*item.prompt_ids, *item.reference_ids] for item in made.items
    )


def test_a_candidate_that_differs_is_scored_lower_by_what_it_differs() -> None:
    made = reference()
    with running(Dials(disagree_every=4)) as stub:
        got = score(stub.address, made, timeout_s=5.0)
    assert got.agreement == pytest.approx(0.75)
    assert got.loglik_change.value == pytest.approx(0.25 * -2.9)
    assert set(got.by_kind) == {prompt.kind for prompt in SUITE}


def test_a_shift_of_likelihood_shows_without_a_change_of_rank() -> None:
    made = reference()
    with running(Dials(logprob_shift=-0.5)) as stub:
        got = score(stub.address, made, timeout_s=5.0)
    assert got.agreement == 1.0
    assert got.loglik_change.value == pytest.approx(-0.5)
    assert got.loglik_change.se == pytest.approx(0.0, abs=1e-9)


def test_every_failure_has_a_cause_and_a_remedy() -> None:
    made = reference()
    with (
        running(Dials(fault=lambda number: "http_500" if number == 3 else None)) as stub,
        pytest.raises(QualityUnavailableError, match="engine is dead") as caught,
    ):
        score(stub.address, made, timeout_s=5.0)
    assert caught.value.status == 500 and caught.value.remedy


def test_a_server_that_hangs_costs_one_timeout() -> None:
    made = reference()
    started = time.monotonic()
    with (
        running(Dials(fault=lambda _: "stall")) as stub,
        pytest.raises(QualityUnavailableError, match="in time"),
    ):
        score(stub.address, made, timeout_s=0.3)
    assert time.monotonic() - started < 3


def test_a_server_without_token_ids_cannot_be_a_reference() -> None:
    with pytest.raises(QualityUnavailableError, match="token ids"):
        reference(Dials(token_ids=False))


@pytest.mark.parametrize(
    "dials", [Dials(nan_logprobs=True), Dials(fault=lambda _: "nan_500")], ids=["nan", "500"]
)
def test_log_probabilities_that_are_no_numbers_are_broken_output(dials: Dials) -> None:
    made = reference()
    with running(dials) as stub, pytest.raises(BrokenOutputError):
        score(stub.address, made, timeout_s=5.0)


def test_a_dead_server_is_told_apart_from_bad_quality() -> None:
    made = reference()
    with running() as stub:
        pass
    with pytest.raises(QualityUnavailableError, match="Connect"):
        score(stub.address, made, timeout_s=2.0)


def test_a_reference_comes_back_from_disk_without_any_text(tmp_path: Path) -> None:
    made, path = reference(), tmp_path / "reference.json"
    save_reference(made, path)
    assert load_reference(path) == made
    assert list(tmp_path.iterdir()) == [path]
    content = path.read_text()
    assert not any(prompt.text[:20] in content for prompt in SUITE)
    assert made.longest_tokens == 1 + 8 + max(len(item.prompt_ids) for item in made.items)


def test_a_reference_of_an_earlier_version_is_read() -> None:
    """Written before there were parts."""
    example = Path(__file__).parents[1] / "data" / "study-of-0.1" / "reference.json"
    assert "parts" not in json.loads(example.read_text())
    read = load_reference(example)
    assert read.parts == {} and read.longest_tokens > read.tokens / len(read.items)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 99}', "{torn"])
def test_a_damaged_reference_is_an_error_with_a_remedy(tmp_path: Path, content: str) -> None:
    path = tmp_path / "reference.json"
    path.write_text(content)
    with pytest.raises(StudyError) as caught:
        load_reference(path)
    assert caught.value.remedy


def test_a_reference_with_missing_scores_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reference.json"
    save_reference(reference(), path)
    data = json.loads(path.read_text())
    data["items"][0]["scores"]["ranks"].pop()
    path.write_text(json.dumps(data))
    with pytest.raises(StudyError, match="number"):
        load_reference(path)


SCORES = st.lists(st.tuples(st.integers(1, 9), st.floats(-20, 0)), min_size=4, max_size=4)


@given(st.lists(SCORES, min_size=1, max_size=6), st.floats(-3, 3))
def test_a_constant_shift_is_found_exactly_and_without_error(
    rows: list[list[tuple[int, float]]], shift: float
) -> None:
    scores = [TokenScores(*map(tuple, zip(*row, strict=True))) for row in rows]
    items = [ReferenceItem(str(i), "k", (1,), (1, 2, 3, 4), s) for i, s in enumerate(scores)]
    moved = [replace(s, logprobs=tuple(v + shift for v in s.logprobs)) for s in scores]
    got = compare(Reference("h", "m", tuple(items)), moved)
    assert got.loglik_change.value == pytest.approx(shift, abs=1e-9)
    assert got.loglik_change.se == pytest.approx(0.0, abs=1e-9)
    assert got.agreement == sum(r == 1 for row in rows for r, _ in row) / (4 * len(rows))
