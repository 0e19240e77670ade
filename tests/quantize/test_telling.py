from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweeper.quantize.telling import EVERY_S, Telling


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def progress(done: int, of: int = 30) -> dict[str, Any]:
    return {"event": "progress", "done": done, "of": of, "what": "layers"}


def test_phases_and_layers_with_the_time_that_is_left() -> None:
    said, clock = [], Clock()
    telling = Telling(said.append, clock)
    telling({"event": "phase", "name": "quantize"})
    for done in (1, 2, 3):
        clock.now_s += 10
        telling(progress(done))
    clock.now_s += 270
    telling(progress(30))
    telling({"event": "phase", "name": "save"})
    assert said == [
        "layers 1 of 30, about 5 min left",
        "layers 2 of 30, about 5 min left",
        "layers 3 of 30, about 4 min left",
        "layers 30 of 30",
        "save",
    ]


def test_no_more_than_a_line_every_few_seconds() -> None:
    said, clock = [], Clock()
    telling = Telling(said.append, clock)
    for done in range(1, 25):
        telling(progress(done))
        clock.now_s += EVERY_S / 4
    assert len(said) == 6


def test_a_count_that_begins_anew_has_a_pace_of_its_own() -> None:
    said, clock = [], Clock()
    telling = Telling(said.append, clock)
    telling(progress(30))
    clock.now_s += 1000
    telling(progress(0))
    clock.now_s += 4
    telling(progress(1))
    assert said[-1] == "layers 1 of 30, about 2 min left"


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["event", "name", "done", "of", "what"]),
            st.one_of(
                st.sampled_from(["phase", "progress"]), st.integers(-3, 40), st.none(), st.text()
            ),
        )
    )
)
def test_any_events_give_lines(events: list[dict[str, Any]]) -> None:
    said: list[str] = []
    telling = Telling(said.append)
    for event in events:
        telling(event)
    assert all(said)
