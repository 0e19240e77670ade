"""Judging the output of a server: what is read, what is written, and what is taken over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig, QualityConfig
from sweeper.engine.protocol import LaunchRequest
from sweeper.engine.registry import create
from sweeper.quality.part import PartJob, PartResult
from sweeper.quality.reference import Reference, load_reference, save_reference
from sweeper.trial import judging
from sweeper.trial.outcome import QualityScore
from sweeper.trial.progress import Event, Note
from sweeper.trial.state import TrialState
from sweeper.verdicts import Verdict
from tests.trial.conftest import plan_in

QUALITY = QualityConfig(reference_tokens=12, max_prompts=6, request_timeout_s=20)
Judge = Callable[..., TrialState]


def judged(folder: Path, faults: list[dict[str, Any]] | None = None, **plan: Any) -> TrialState:
    """Start a mock with `faults`, and judge its output without driving it."""
    heard: list[Event] = []
    made = plan_in(folder, **{"quality": QUALITY, **plan})
    made.run_dir.mkdir(exist_ok=True)
    cfg = EngineConfig(
        name="mock", options={"faults": faults or [], "decode_ms": 0.2}, stop_timeout_s=2
    )
    engine = create(cfg, cache_dir=folder / "cache")
    request = LaunchRequest(
        "mock", made.engine_parameters, made.run_dir, made.served_name, 20.0, made.token,
        record_path=made.record_path,
    )  # fmt: skip
    state = TrialState(made, heard.append)
    with engine.serve(request) as server:
        judging.judge(state, server)
    state.manifest["notes"] = [event.text for event in heard if isinstance(event, Note)]
    return state


def notes(state: TrialState) -> list[str]:
    told: Any = state.manifest["notes"]
    return list(told)


def candidate(reference: Reference, **parameters: Any) -> dict[str, Any]:
    return {
        "number": 1, "kind": "search", "reference": reference, "may_write_reference": False,
        "engine_parameters": parameters, "quality_key": "other",
    }  # fmt: skip


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> TrialState:
    return judged(tmp_path_factory.mktemp("baseline"))


def test_the_baseline_writes_the_reference_and_reproduces_it_in_a_batch(
    baseline: TrialState, tmp_path: Path
) -> None:
    score, reference = baseline.quality, baseline.reference
    assert score is not None and reference is not None
    assert (score.agreement, score.agreement_change, score.is_no_change) == (1.0, 0.0, True)
    assert score.agreement_change_se is not None and score.agreement_change_se > 0
    assert (score.clusters, score.written["identical"], score.written["prompts"]) == (6, 6, 6)
    assert reference.parts["written"] == {"digests": score.written["digests"]}
    assert notes(baseline) == []
    save_reference(reference, tmp_path / "reference.json")
    assert load_reference(tmp_path / "reference.json") == reference


def test_batching_that_changes_the_output_is_told_once_at_the_baseline(tmp_path: Path) -> None:
    state = judged(tmp_path, [{"batch_slips": 0.3}])
    assert state.quality is not None
    changed = 6 - state.quality.written["identical"]
    assert changed > 0
    assert notes(state) == [
        f"batching changed the greedy output of {changed} of 6 prompts at the defaults: written "
        "several at once, they differ from one at a time"
    ]
    assert judging.fault(state) is None, "rounding is no fault"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"writes_stuck": True}, "again and again in 6 of 6 prompts, the reference in 0"),
        ({"writing_slips": 0.9}, "its decoding does not follow the model"),
    ],
    ids=["!!!!", "gibberish"],
)
def test_a_decoding_that_is_broken_fails_although_it_reads_well(
    baseline: TrialState, tmp_path: Path, fault: dict[str, Any], words: str
) -> None:
    assert baseline.reference is not None
    state = judged(tmp_path, [fault], **candidate(baseline.reference))
    assert state.quality is not None
    assert state.quality.agreement == 1.0, "reading alone would not see it"
    found = judging.fault(state)
    assert found is not None
    assert found.verdict is Verdict.QUALITY_FAIL
    assert words in found.cause
    assert found.remedy


def test_a_real_change_is_beyond_its_error_and_named_with_it(
    baseline: TrialState, tmp_path: Path
) -> None:
    assert baseline.reference is not None
    limits = QualityConfig(**{**vars(QUALITY), "max_agreement_drop": 0.05})
    options = candidate(baseline.reference, quantization="made_4bit") | {"quality": limits}
    state = judged(tmp_path, **options)
    assert state.quality is not None and state.quality.change is not None
    assert state.quality.change == pytest.approx(state.quality.agreement - 1.0)
    assert judging.fault(state) is None, "a fall within its error falls through no floor"


def test_drafting_is_judged_against_the_same_output_without_it(
    baseline: TrialState, tmp_path: Path
) -> None:
    assert baseline.reference is not None and baseline.quality is not None
    known = QualityScore(1.0, 0.01, 0.0, 0.01, 72, "k")
    options = candidate(baseline.reference, speculative="ngram", num_speculative_tokens=3) | {
        "known_quality": known,
        "drafting": "speculative=ngram",
        "to_write": True,
        "plain_written": baseline.quality.written["digests"],
    }
    sound = judged(tmp_path, **options)
    assert sound.quality is not None and sound.quality.reused
    assert sound.quality.written["effect"] == {
        "changed": 0, "own_changed": 0, "beyond_own": False,
    }  # fmt: skip
    assert notes(sound) == []
    slips = [{"writing_slips": 0.1, "when": {"speculative": "ngram"}}]
    wrong = judged(tmp_path, slips, **options)
    assert wrong.quality is not None
    effect = wrong.quality.written["effect"]
    assert effect["changed"] > 0
    (note,) = notes(wrong)
    assert note.startswith(
        f"speculative=ngram changed the greedy output of {effect['changed']} of 6 prompts; the "
        "defaults themselves reproduce 6 of 6"
    )
    assert ("rounding" in note) == (not effect["beyond_own"])


def test_what_is_known_is_taken_over_without_a_request(
    baseline: TrialState, tmp_path: Path
) -> None:
    assert baseline.reference is not None
    known = QualityScore(0.5, 0.1, -0.1, 0.05, 24, "k")
    plan = plan_in(tmp_path, known_quality=known, reference=baseline.reference)
    state = TrialState(plan, lambda _: None)
    silent: Any = SimpleNamespace(quality=None)
    judging.judge(state, silent)
    assert state.quality == QualityScore(0.5, 0.1, -0.1, 0.05, 24, "k", reused=True)


def test_perplexity_is_read_beside_agreement_and_ranks(tmp_path: Path) -> None:
    limits = QualityConfig(
        **{**vars(QUALITY), "kind": "perplexity", "text_tokens": 800, "max_prompts": 2}
    )
    first = judged(tmp_path, quality=limits)
    assert first.quality is not None and first.reference is not None
    assert first.quality.ranked_by == "perplexity"
    assert first.quality.score == -first.quality.perplexity["nats_per_token"]
    assert first.reference.longest_tokens >= 100, "room for a window, not only for a prompt"
    options = candidate(first.reference, quantization="made_4bit") | {"quality": limits}
    state = judged(tmp_path, **options)
    assert state.quality is not None
    assert state.quality.perplexity["tokens"] == first.quality.perplexity["tokens"]
    assert state.quality.perplexity["change_nats"] != 0
    assert state.quality.settled(first.quality) in (first.quality.score, state.quality.score)


def test_a_part_gets_what_it_kept_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[PartJob] = []

    def measure(job: PartJob) -> PartResult:
        jobs.append(job)
        job.tell("asking")
        found = {"mine": {"metric": "acc", "value": 0.5, "se": 0.1, "n": 50}}
        return PartResult(found, {"value": 0.5})

    monkeypatch.setattr(judging.Part, "load", lambda part: measure)
    limits = QualityConfig(**{**vars(QUALITY), "kind": "lm_eval", "tasks": ["mine"]})
    first = judged(tmp_path, quality=limits)
    assert first.reference is not None and first.quality is not None
    assert (first.quality.name, first.quality.score) == ("mine acc", 0.5)
    assert notes(first) == ["trial 0: asking"]
    judged(tmp_path, **candidate(first.reference) | {"quality": limits})
    assert [job.kept for job in jobs] == [None, {"value": 0.5}]
    assert all(job.run_dir.is_dir() and job.config is limits for job in jobs)
