"""Who works on a study and what it is at, in words."""

from __future__ import annotations

from collections import Counter

import pytest

from sweeper.report.presence_text import Listed, render_list, render_presence, state_words
from sweeper.tracking.bulletin import Now
from sweeper.tracking.presence import Presence, State
from sweeper.trial.progress import StudyProgress

RUNNING = Presence(State.RUNNING, "process 7 on far since noon", "far", 7, "noon", alive_s=3.0)
NOW = Now(
    5, "search", {"max_num_seqs": 64}, 6, 20, 1000.0, "load", "concurrency 8", 1100.0, ["c 1"]
)
PROGRESS = StudyProgress(3, "trial 1: 40 tokens/s")


def test_a_running_study() -> None:
    text = render_presence(RUNNING, [NOW], PROGRESS, 1160.0)
    assert "running: process 7 on far since noon; last sign of life 3 s ago" in text
    assert "launch 6 of 20, trial 5 (search)" in text
    assert "load concurrency 8" in text
    assert "measured: c 1" in text
    assert "max_num_seqs=64" in text
    assert "best so far: trial 1: 40 tokens/s; front: 3 points" in text


def test_a_clock_that_is_behind_gives_no_negative_age() -> None:
    assert (
        "-" not in render_presence(RUNNING, [NOW], PROGRESS, 900.0).split("now:")[1].split(":")[0]
    )


def test_between_trials_and_long_silent() -> None:
    text = render_presence(
        Presence(State.RUNNING, "p", alive_s=7200.0), [], StudyProgress(0, ""), 0.0
    )
    assert "between two trials" in text
    assert "has it hung?" in text
    assert "nothing measured yet" in text


def test_a_killed_study_says_what_it_was_at() -> None:
    text = render_presence(Presence(State.KILLED, "p was killed"), [NOW], PROGRESS, 0.0)
    assert "it was at trial 5, load concurrency 8" in text
    assert "now:" not in text


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Presence(State.ENDED, "budget used"), "ended"),
        (Presence(State.ENDED, "stopped: KeyboardInterrupt"), "interrupted"),
        (Presence(State.ENDED, "stopped: the disk is full: x"), "ended"),
        (Presence(State.RUNNING, "p", suspended=True), "suspended"),
        (Presence(State.UNKNOWN, "p"), "cannot tell"),
    ],
)
def test_states_in_words(seen: Presence, words: str) -> None:
    assert state_words(seen) == words


def test_the_list_begins_with_what_runs() -> None:
    done = Presence(State.ENDED, "x", alive_s=1.0)
    text = render_list(
        [
            Listed("old", done, Counter(OK=3, CAPACITY=1), "trial 2: 5 tokens/s"),
            Listed("broken", Presence(State.NEW, "x"), fault="its line 3 is no JSON"),
            Listed("live", RUNNING),
        ],
        "/data",
    )
    lines = text.splitlines()
    order = [
        next(n for n, line in enumerate(lines) if line.split()[:1] == [name])
        for name in ("live", "old", "broken")
    ]
    assert order == sorted(order)
    assert "running on far, 7" in text
    assert "1 CAPACITY, 3 OK" in text
    assert "its line 3 is no JSON" in text


def test_an_empty_folder() -> None:
    assert "no study in /data yet" in render_list([], "/data")
