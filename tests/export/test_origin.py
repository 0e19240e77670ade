from __future__ import annotations

from dataclasses import replace

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.export.origin import origin, sureness, tags, title
from sweeper.export.registry import render_all
from tests.export.conftest import make_source
from tests.export.sources import SOURCES
from tests.factories import outcome


def test_a_recommendation_is_called_one_and_nothing_else_is() -> None:
    assert title(make_source()) == "Recommended deployment of tiny"
    asked = make_source(asked_for=True)
    assert title(asked) == "Deployment of tiny from trial 1, which was asked for"
    missed = make_source(select=SelectConfig(slo=SloConfig(e2e_p95_ms=1)))
    assert title(missed) == "Nearest miss for tiny, not a recommendation"
    assert "DOES NOT KEEP THE SLO e2e_p95_ms=1" in " ".join(origin(missed))
    assert title(SOURCES["predicted"]()) == "Predicted deployment of qwen7b"


def test_numbers_have_their_intervals_and_how_sure_they_are() -> None:
    told = "\n".join(origin(SOURCES["gpu"]()))
    assert "149.7 output tokens/s [147.7, 151.7]" in told
    assert "end-to-end P95 601.4 ms [593.3, 609.5]" in told
    assert "Confirmed: better by 49.7 % [45.2, 54.3]" in told
    assert "digest d41c88f0b1e64c0a9a6f2f7f3f1d5e77" in told


def test_what_is_to_be_known_of_the_checkpoint_is_in_every_file() -> None:
    note = "Its checkpoint (w4a16) was never made."
    for name, file in render_all(["all"], make_source(notes=(note,))).items():
        assert name == "recommendation.json" or "w4a16" in file.text


def test_what_was_measured_once_says_so() -> None:
    chosen = make_source().recommendation
    assert sureness(chosen) == "Not confirmed by repeats: its numbers come from one launch."
    again = replace(chosen, point={**chosen.point, "launches": 3})
    assert sureness(again) == "Not confirmed by repeats."


def test_a_measurement_that_is_missing_is_left_out() -> None:
    bare = outcome(0)
    del bare.points[0].metrics["ttft_p95_ms"]
    told = " ".join(origin(make_source(outcomes=[bare], select=SelectConfig())))
    assert "time to first token" not in told
    assert "100 output tokens/s" in told


def test_tags_are_text_of_one_line() -> None:
    found = tags(make_source(study="a\nb", limit=None))
    assert found["sweeper/study"] == "a b"
    assert "sweeper/admission-limit" not in found
    assert all(isinstance(value, str) for value in found.values())
