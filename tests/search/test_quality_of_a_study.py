"""Quality through a whole study on the mock engine: who fails, what is reused, what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweeper.config.compose import compose
from sweeper.config.schema import SelectConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import front_mask, recommend
from sweeper.search.loop import StudyRun
from sweeper.tracking.journal import Journal
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.progress import Event, Note
from sweeper.verbs.running import prepare
from sweeper.verdicts import Phase, Verdict

SPACE = """
name: quality
parameters:
  max_num_seqs: {choices: [default, 8, 64]}
  quantization: {choices: [none, fp8_per_tensor]}
  speculative: {choices: [none, ngram]}
  num_speculative_tokens: {choices: [2, 4], default: 2, when: {speculative: [ngram]}}
seeds:
  - {quantization: fp8_per_tensor}
  - {max_num_seqs: 8}
  - {speculative: ngram}
  - {speculative: ngram, max_num_seqs: 8, num_speculative_tokens: 4}
  - {quantization: fp8_per_tensor, max_num_seqs: 8}
"""
FAULTS = (
    "{writes_stuck: true, slow_factor: 0.5, when: {quantization: fp8_per_tensor}},"
    "{writing_slips: 0.1, when: {speculative: ngram}}"
)


def test_broken_writing_never_wins_and_scheduling_measures_nothing_again(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    cfg = compose(
        [
            "engine=mock", "hardware=h100_80gb", "model=qwen7b", f"space={tmp_path}/space.yaml",
            "workload.input_tokens=16", "workload.output_tokens=8", "load.concurrency=[1,4]",
            "load.requests_per_stream=2", "load.min_requests=2", "quality.max_prompts=6",
            "quality.reference_tokens=12", "sampler=random", "tracking=none", "budget.launches=6",
            f"+engine.options={{quality_loss: {{fp8_per_tensor: 0.0}}, faults: [{FAULTS}]}}",
            f"cache_dir={tmp_path}/cache",
        ],
        device_kind="cpu",
    )  # fmt: skip
    paths = StudyPaths(tmp_path / "studies", "s")
    paths.create()
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Note):
            told.append(event.text)

    class SilentTracker:
        def __getattr__(self, name: str) -> Any:
            return lambda *_, **__: None

    tracker: Any = SilentTracker()
    setup = prepare(cfg, lambda _: None)
    StudyRun(setup, paths, Journal(paths.trials_jsonl), tracker, listen).run()
    trials = Journal(paths.trials_jsonl).read()
    assert len(trials) == 6
    baseline, stuck, scheduled, drafted, again, stuck_again = trials

    assert baseline.quality is not None and not baseline.quality.reused
    assert baseline.quality.written["identical"] == 6

    assert stuck.verdict is Verdict.QUALITY_FAIL and stuck.phase == Phase.QUALITY
    assert "again and again" in stuck.cause
    assert stuck.quality is not None and stuck.quality.agreement == 1.0
    assert stuck.points, "fast, and measured"
    assert stuck_again.verdict is Verdict.QUALITY_FAIL, "reused, and no better"
    assert Phase.QUALITY not in stuck_again.timings_s

    assert scheduled.quality is not None and scheduled.quality.reused
    assert Phase.QUALITY not in scheduled.timings_s
    assert scheduled.quality.written == baseline.quality.written

    assert drafted.quality is not None and drafted.quality.reused, "nothing is read again"
    assert Phase.QUALITY in drafted.timings_s, "but it writes"
    effect = drafted.quality.written["effect"]
    assert effect["changed"] > effect["own_changed"] == 0
    assert again.quality is not None and Phase.QUALITY not in again.timings_s, "once a study"
    assert again.quality.written == drafted.quality.written
    notes = [text for text in told if "changed the greedy output" in text]
    assert len(notes) == 1 and notes[0].startswith("speculative=ngram changed")

    frame = points_frame(trials)
    failed = frame["trial"].isin([stuck.number, stuck_again.number])
    assert frame[failed]["output_tokens_per_s"].max() > 0
    assert not front_mask(frame)[failed].any()
    assert recommend(frame, SelectConfig()).trial not in {stuck.number, stuck_again.number}
