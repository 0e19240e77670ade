from __future__ import annotations

import io
import re

from rich.console import Console

from sweeper.report.live import LiveView, ViewState, eta_text, line_of, panel
from sweeper.trial.progress import (
    Event,
    LevelDone,
    Note,
    PhaseChanged,
    PhaseProgress,
    StudyProgress,
    TrialEnded,
    TrialStarted,
)
from sweeper.verdicts import Verdict
from tests.factories import outcome

EVENTS: list[Event] = [
    Note("tracking [off]"),
    TrialStarted(3, "search", {"max_num_seqs": 64}, 2, 20),
    PhaseChanged(3, "start"),
    PhaseChanged(3, "load", "concurrency 8"),
    LevelDone(3, "4 requests/s (poisson)", {"output_tokens_per_s": 123.4, "e2e_p95_ms": 900.0}),
    TrialEnded(outcome(3)),
    TrialEnded(outcome(4, verdict=Verdict.CAPACITY)),
    StudyProgress(5, "trial 3 at concurrency 8: 123 tokens/s", {"CAPACITY": 1}, 3725.0),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_have_a_time_and_no_colours() -> None:
    stream = io.StringIO()
    with LiveView("tiny", stream) as listener:
        for event in EVENTS:
            listener(event)
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(EVENTS)
    assert all(re.match(r"\d\d:\d\d:\d\d  \S", line) for line in lines)
    assert "\x1b" not in stream.getvalue()
    assert "launch 3 of 20, trial 3 (search): max_num_seqs=64" in lines[1]
    assert "load concurrency 8" in lines[3]
    assert "trial 3: 4 requests/s (poisson): 123.4 tokens/s" in lines[4]
    assert "CAPACITY in start after 52 s: No available memory" in lines[6]
    assert "failures: CAPACITY 1; about 1 h 02 min left" in lines[7]


def test_panel_shows_what_runs_now() -> None:
    state = ViewState(started_s=0.0)
    for event in [*EVENTS[-1:], *EVENTS[:5]]:
        state.apply(event, 100.0)
    console = Console(file=io.StringIO(), width=120, no_color=True)
    console.print(panel("tiny", state, 165.0))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for expected in (
        "launch 3 of 20 · trial 3 (search)",
        "max_num_seqs=64",
        "load concurrency 8 · 1 min 05 s in this trial",
        "trial 3 at concurrency 8: 123 tokens/s",
        "5 operating points",
        "CAPACITY 1",
        "2 min 45 s · left: about 1 h 02 min",
        "tracking [off]",
    ):
        assert expected in text


def test_progress_within_a_phase_is_shown_and_seldom_written() -> None:
    stream, now_s = io.StringIO(), [0.0]
    with LiveView("tiny", stream, clock=lambda: now_s[0]) as listener:
        for seconds, text in [
            (0, "making the environment"),
            (1, "layers 1 of 30"),
            (4, "layers 2 of 30"),
            (32, "layers 9 of 30"),
            (33, "looking at what was made"),
        ]:
            now_s[0] = float(seconds)
            listener(PhaseProgress(3, "quantize", text))
    lines = [line.partition("  ")[2] for line in stream.getvalue().splitlines()]
    assert lines == [
        "trial 3: quantize: making the environment",
        "trial 3: quantize: layers 1 of 30",
        "trial 3: quantize: layers 9 of 30",
        "trial 3: quantize: looking at what was made",
    ]
    state = ViewState(started_s=0.0)
    state.apply(PhaseProgress(3, "quantize", "layers 2 of 30"), 1.0)
    assert state.phase == "quantize: layers 2 of 30"
    assert not state.recent, "the panel has a line of its own for it"


def test_trial_leaves_the_panel_when_it_ends() -> None:
    state = ViewState(started_s=0.0)
    for event in EVENTS:
        state.apply(event, 1.0)
    assert state.trial is None
    assert any("OK" in line for line in state.recent)


def test_terminal_keeps_outcomes_and_restores_itself() -> None:
    stream = Terminal()
    with LiveView("tiny", stream) as listener:
        for event in EVENTS:
            listener(event)
    text = stream.getvalue()
    assert "tracking [off]" in text
    assert "CAPACITY in start" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_unlimited_budget_has_no_total() -> None:
    assert line_of(TrialStarted(0, "baseline", {}, 0, None)).startswith("launch 1, trial 0")
    assert "engine defaults" in line_of(TrialStarted(0, "baseline", {}, 0, None))


def test_what_is_left_says_how_sure_it_is_and_what_it_buys() -> None:
    told = StudyProgress(3, "", {}, 600.0, 500.0, 700.0, outlook="one more hour buys little")
    assert eta_text(told) == "about 10 min 00 s (8 min 20 s to 11 min 40 s)"
    assert eta_text(StudyProgress(3, "", {}, 600.0)) == "about 10 min 00 s"
    assert eta_text(StudyProgress(3, "", {}, 600.0, 600.2, 600.2)) == "about 10 min 00 s"
    assert eta_text(StudyProgress(3, "")) == ""
    line = line_of(told)
    assert line.endswith(f"; {eta_text(told)} left; one more hour buys little")


def test_a_cut_launch_and_levels_left_out_are_told() -> None:
    cut = outcome(1, partial="cut after concurrency 8: it is slower")
    assert "cut after concurrency 8" in line_of(TrialEnded(cut))
    short = outcome(2, skipped={"concurrency 64": "throughput has fallen"})
    assert "1 of 1 points valid, concurrency 64 left out" in line_of(TrialEnded(short))


def test_predicted_figures_are_told_from_measured_ones() -> None:
    figures = {"output_tokens_per_s": 123.4}
    assert line_of(LevelDone(3, "concurrency 1", figures)).endswith("123.4 tokens/s")
    told = line_of(LevelDone(3, "concurrency 1", figures, predicted=True))
    assert told.endswith("123.4 tokens/s (predicted)")


def test_time_on_a_clock_of_the_engines_own_is_told_so() -> None:
    simulated = outcome(1, timings_s={"total": 90.0, "real": 0.3})
    assert "after 1 min 30 s of virtual time" in line_of(TrialEnded(simulated))
