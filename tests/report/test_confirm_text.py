from __future__ import annotations

import shlex
from typing import Any

from sweeper.config.schema import (
    BudgetConfig,
    ConfirmConfig,
    SelectConfig,
    SloConfig,
    SweeperConfig,
)
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import recommend
from sweeper.report.confirm_text import confirm_rows, with_command
from sweeper.report.html import report_html
from sweeper.report.summary import study_summary
from sweeper.report.text import front_csv, front_frame, render_front
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.run import REAL
from sweeper.verdicts import Verdict
from tests.pareto.again import confirmed, searched

BETTER = confirmed(searched(100, 150), {0: [100, 101, 99], 1: [110, 112, 109]})
NO_GAIN = confirmed(searched(100, 150), {0: [100, 103, 97], 1: [104, 102, 101]})


def chosen(trials: list[TrialOutcome], **cfg: Any) -> Recommendation:
    frame = points_frame(trials)
    whole = SweeperConfig(**{"budget": BudgetConfig(launches=len(trials)), **cfg})
    return with_command(recommend(frame, SelectConfig()), frame, trials, whole, "s")


def settings(found: Recommendation) -> dict[str, str]:
    words = shlex.split(found.to_confirm)
    assert words[:4] == ["python", "-m", "sweeper", "resume"]
    return dict(word.split("=", 1) for word in words[4:])


def test_command_asks_for_what_it_takes() -> None:
    """Two deployments three times each, beside two launches that are used."""
    found = settings(chosen(searched(100, 150)))
    assert found == {"study": "s", "confirm.repeats": "3", "budget.launches": "8"}


def test_command_raises_no_limit_that_is_high_enough_or_not_set() -> None:
    wide = settings(chosen(searched(100, 150), budget=BudgetConfig(launches=100)))
    assert wide["budget.launches"] == "100"
    timed = settings(chosen(searched(100, 150), budget=BudgetConfig(launches=None, minutes=2)))
    assert timed["budget.minutes"] == "7", "eight launches of 52 s"
    assert "budget.launches" not in timed


def test_command_names_a_folder_of_ones_own() -> None:
    assert settings(chosen(searched(100, 150), studies_dir="my studies"))["studies_dir"] == (
        "my studies"
    )


def test_command_carries_the_promise_that_was_asked_about() -> None:
    select = SelectConfig(slo=SloConfig(e2e_p95_ms=5000), prefer="latency")
    frame, trials = points_frame(searched(100, 150)), searched(100, 150)
    cfg = SweeperConfig(select=select)
    found = settings(with_command(recommend(frame, select), frame, trials, cfg, "s"))
    assert (found["select.slo.e2e_p95_ms"], found["select.prefer"]) == ("5000", "latency")


def test_command_for_what_was_left_open_asks_for_the_rest() -> None:
    found = chosen(NO_GAIN)
    assert found.confirmation is not None
    needed = found.confirmation.repeats_needed
    assert needed is not None
    assert settings(found)["confirm.repeats"] == str(needed)
    assert settings(found)["budget.launches"] == str(2 + 2 * needed)


def test_command_makes_up_for_launches_that_gave_nothing() -> None:
    lost = Verdict.MEASUREMENT_INVALID
    found = chosen(confirmed(searched(100, 150), {0: [lost, 101, lost], 1: [110, 111, 109]}))
    assert found.confirmation is not None and found.confirmation.pairs == 1
    assert settings(found)["confirm.repeats"] == "3"
    assert settings(found)["budget.launches"] == str(2 + 6 + 2 * 2)


def test_what_is_settled_or_cannot_be_asks_for_nothing() -> None:
    assert chosen(BETTER).to_confirm == ""
    assert chosen(searched(100, 50)).to_confirm == "", "nothing is worth a launch"
    virtual = searched(100, 150)
    for outcome in virtual:
        outcome.timings_s[REAL] = 0.1
    assert chosen(virtual).to_confirm == ""


def test_more_repeats_than_three_are_asked_for_as_they_were() -> None:
    asked = chosen(searched(100, 150), confirm=ConfirmConfig(repeats=5))
    assert settings(asked)["confirm.repeats"] == "5"


def test_the_terminal_and_the_report_say_what_was_launched_again() -> None:
    found, frame = chosen(BETTER), points_frame(BETTER)
    text = render_front(frame, found)
    assert "launched again beside the defaults, in turns" in text
    assert "+50.0 %" in text and "better" in text
    page = report_html(frame, BETTER, found, "s")
    assert "Launched again beside the defaults" in page
    assert "confirmed: better by 10.3 %" in page
    open_still = chosen(searched(100, 150))
    assert f"to confirm it: {open_still.to_confirm}" in render_front(
        points_frame(searched(100, 150)), open_still
    )
    assert open_still.to_confirm in report_html(
        points_frame(searched(100, 150)), searched(100, 150), open_still, "s"
    )
    assert confirm_rows(open_still) == [] == confirm_rows(None)


def test_points_on_the_front_within_noise_are_marked() -> None:
    trials = confirmed(searched(100, 104, 103, 80), {0: [96, 104, 100], 1: [106, 98, 102]})
    text = render_front(points_frame(trials), chosen(trials))
    assert "≈ within the noise of this machine" in text
    assert "≈" not in render_front(points_frame(searched(100, 150)), chosen(searched(100, 150)))


def test_a_confirmed_winner_is_shown_even_where_it_fell_off_the_front() -> None:
    """Trial 2 was measured once, and is now ahead of what its repeats say of trial 1."""
    trials = confirmed(searched(100, 150, 148), {0: [100, 100.5, 99.5], 1: [130, 131, 129]})
    found, frame = chosen(trials), points_frame(trials)
    assert found.trial == 1
    assert 1 not in list(front_frame(frame)["trial"])
    shown = [line.split()[:2] for line in render_front(frame, found).splitlines()]
    assert ["►", "1"] in shown and "≈" not in render_front(frame, found)


def test_the_table_of_the_front_has_no_lists_in_its_cells() -> None:
    text = front_csv(front_frame(points_frame(BETTER)))
    assert "searched" not in text.splitlines()[0].split(",")
    assert "launches" in text.splitlines()[0].split(",")


def test_the_parent_run_has_verdict_and_gain() -> None:
    frame = points_frame(BETTER)
    summary = study_summary(SweeperConfig(), BETTER, frame, chosen(BETTER), "budget used up")
    assert (summary.tags["confirmed"], summary.tags["confirmation"]) == ("true", "better")
    assert round(summary.metrics["gain_percent"], 1) == 10.3
    assert summary.metrics["gain_low_percent"] > 0
    assert summary.metrics["confirmed_launches"] == 3
    assert summary.metrics["noise_percent"] > 0
