"""What the figures of a study are made of; plotly checks each as it is built."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import recommend
from sweeper.report.importance.compute import Importance
from sweeper.report.importance.insight import Insight
from sweeper.report.plots import frontier, importance, ladder, parallel, predicted, timeline
from sweeper.report.plots.style import BLUE, GREEN, GREY, SERIES, VERMILLION, hover
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import open_study, outcome, point, study

PER_USER = frontier.PER_USER


def chosen(outcomes: list[TrialOutcome], **slo: float) -> Recommendation:
    return recommend(points_frame(outcomes), SelectConfig(slo=SloConfig(**slo)))


def driven() -> list[TrialOutcome]:
    """The small study with what a user sees, and what the hardware allows the defaults."""
    outcomes = study()
    for trial in outcomes:
        for one in trial.points:
            one.metrics[PER_USER] = one.metrics["output_tokens_per_s"] / (one.concurrency or 1)
            one.predicted = {"output_tokens_per_s_ceiling": 400.0, "ttft_floor_ms": 5.0}
    return outcomes


def named(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data}


def test_the_frontier_has_front_baseline_choice_and_what_is_possible() -> None:
    outcomes = driven()
    figure = frontier.figure(points_frame(outcomes), chosen(outcomes))
    traces = named(figure)
    assert list(traces) == [
        "speed of light of the defaults (predicted)",
        "measured, not on the front",
        "engine defaults (baseline)",
        "Pareto front",
        "recommended",
    ]
    assert "per user" in figure.layout.xaxis.title.text
    assert sum(len(traces[name].x) for name in list(traces)[1:4]) == 8
    # 400 tokens/s at most, shared by 1, 8 and 32 users.
    assert list(traces["speed of light of the defaults (predicted)"].x) == [400.0, 50.0, 12.5]
    assert "max_num_seqs=64" in traces["recommended"].hovertext[0]
    assert traces["engine defaults (baseline)"].marker.symbol[0] == "diamond"
    assert traces["Pareto front"].error_y.array is not None


def test_the_frontier_switches_its_axis_and_keeps_its_traces() -> None:
    outcomes = driven()
    frame = points_frame(outcomes)
    assert frontier.views(frame) == ["user", "ttft", "tpot", "e2e"]
    figures = [frontier.figure(frame, chosen(outcomes), view=key) for key in frontier.views(frame)]
    assert len({tuple(named(figure)) for figure in figures}) == 1
    assert frontier.figure(frame, view="e2e_mean") is None
    assert frontier.views(points_frame([])) == []
    assert frontier.figure(points_frame([])) is None


def test_the_promise_is_a_region_where_the_axis_is_its_metric() -> None:
    outcomes = driven()
    frame, found = points_frame(outcomes), chosen(outcomes, e2e_p95_ms=1000)
    region, limit = frontier.figure(frame, found, view="e2e").layout.shapes
    assert region.x1 == limit.x0 == 1000
    assert not frontier.figure(frame, found, view="user").layout.shapes
    # What breaks the promise is hollow.
    base = named(frontier.figure(frame, found, view="user"))["engine defaults (baseline)"]
    assert list(base.marker.symbol) == ["diamond", "diamond", "diamond-open"]


def test_a_predicted_study_does_not_say_measured() -> None:
    outcomes = study()
    for trial in outcomes:
        trial.manifest = {"engine": {"name": "simulate", "predicted": True}}
    names = named(frontier.figure(points_frame(outcomes), chosen(outcomes)))
    assert "predicted, not on the front" in names
    assert "measured, not on the front" not in names


def test_ladders_part_their_deployments_and_draw_the_promise() -> None:
    outcomes = study()
    frame, found = points_frame(outcomes), chosen(outcomes, e2e_p95_ms=1000)
    figure = ladder.figure(frame, found)
    lines = [trace for trace in figure.data if trace.yaxis == "y2"]
    assert {trace.name for trace in lines} >= {"engine defaults (baseline)", "recommended: trial 1"}
    assert sum(x is None for trace in lines for x in trace.x) == sum(
        len({text.split(" ")[1] for text in trace.hovertext if text}) - 1 for trace in lines
    )
    assert figure.layout.shapes[0].y0 == 1000
    assert figure.layout.xaxis.title.text == "concurrent streams"
    assert ladder.figure(points_frame(open_study())).layout.xaxis.title.text == "requests/s offered"
    assert ladder.figure(points_frame([outcome(0)])) is None
    assert ladder.figure(points_frame([])) is None


def test_the_timeline_leaves_pauses_out_and_tells_causes() -> None:
    began = ["2024-01-01T00:00:00+00:00", "2024-01-01T00:01:00+00:00", "2024-01-09T00:00:00+00:00"]
    outcomes = [
        outcome(n, started_at=at, verdict=Verdict.OK if n < 2 else Verdict.CAPACITY)
        for n, at in enumerate(began)
    ]
    spans = timeline.spans(outcomes)
    assert [(span.start_s, span.end_s) for span in spans] == [(0, 52), (52, 104), (104, 156)]
    lanes = named(timeline.figure(outcomes))
    assert set(lanes) == {"OK", "CAPACITY", "best so far"}
    assert "No available memory" in lanes["CAPACITY"].hovertext[0]
    assert "raise gpu_memory_utilization" in lanes["CAPACITY"].hovertext[0]


def test_launches_side_by_side_overlap() -> None:
    outcomes = [outcome(n, started_at=f"2024-01-01T00:00:{10 * n:02d}+00:00") for n in range(3)]
    assert [span.start_s for span in timeline.spans(outcomes)] == [0, 10, 20]


def test_virtual_time_is_told_as_such() -> None:
    outcomes = [outcome(n, timings_s={"total": 60.0, "real": 0.1}) for n in range(3)]
    assert [span.start_s for span in timeline.spans(outcomes)] == [0, 60, 120]
    assert "virtual time" in timeline.figure(outcomes).layout.xaxis.title.text
    refused = outcome(0, verdict=Verdict.INFEASIBLE_CONFIG, launched=False, timings_s={})
    assert timeline.figure([refused]) is None


def test_parallel_coordinates_go_through_settings_and_figures() -> None:
    outcomes = study()
    figure = parallel.figure(outcomes, chosen(outcomes, e2e_p95_ms=1000))
    titles = [text.replace("<br>", "") for text in figure.layout.xaxis.ticktext]
    assert "max_num_seqs" in titles and "quantization" in titles
    assert titles[-1] == "agreementwith thereference"
    traces = named(figure)
    assert set(traces) == {"failed or refused", "on the front", "engine defaults", "recommended"}
    assert "No available memory" in traces["failed or refused"].hovertext[0]
    # What failed has settings and no figures.
    ends = [y for x, y in zip(traces["failed or refused"].x, traces["failed or refused"].y,
                              strict=True) if x is not None and x >= len(titles) - 3]  # fmt: skip
    assert set(ends) == {None}
    assert parallel.figure([outcome(0)]) is None
    assert parallel.figure([]) is None


def test_of_a_latency_the_lowest_stands_on_top() -> None:
    fast = outcome(1, deployment={"a": 1}, points=[point(8, e2e_p95_ms=10)])
    figure = parallel.figure([outcome(0, points=[point(8, e2e_p95_ms=90)]), fast])
    heights = {trace.name: trace.y[2] for trace in figure.data}
    assert heights["on the front"] == 1.0
    assert heights["engine defaults"] == 0.0


def test_predicted_over_measured_lies_on_the_diagonal_where_it_is_right() -> None:
    outcomes = study()
    guess = {"concurrency 8": {"output_tokens_per_s_per_gpu": 150.0, "e2e_p95_ms": 350.0}}
    outcomes[1].manifest = {"prior": {"roofline": guess}}
    (speed, latency) = [
        trace for trace in predicted.figure(outcomes).data if trace.name == "roofline"
    ]
    assert (list(speed.x), list(speed.y)) == ([150.0], [150.0])
    assert (list(latency.x), list(latency.y)) == ([700.0], [350.0])
    assert "-50%" in latency.hovertext[0]
    assert predicted.figure(study()) is None


def test_importance_has_a_panel_a_figure_and_marks_what_is_noise() -> None:
    ones = [
        Importance("a", 0.7, 0.5, 0.9, True, "", 12),
        Importance("b", 0.1, 0.0, 0.4, False, "c=1", 9),
    ]
    figure = importance.figure(Insight("", 12, {"speed": ones, "quality": ones[:1]}))
    assert [trace.yaxis for trace in figure.data] == ["y", "y2"]
    bars = figure.data[0]
    assert list(bars.y) == ["a", "b (c=1)"]
    assert list(bars.marker.pattern.shape) == ["", "/"]
    assert (bars.error_x.array[0], bars.error_x.arrayminus[0]) == pytest.approx((0.2, 0.2))
    domains = [figure.layout.yaxis.domain, figure.layout.yaxis2.domain]
    assert domains[1][0] == pytest.approx(0) and domains[0][1] == 1
    assert domains[1][1] < domains[0][0]
    assert importance.figure(Insight()) is None


@pytest.mark.parametrize("colour", sorted({BLUE, GREEN, GREY, VERMILLION, *SERIES}))
@pytest.mark.parametrize("page", ["#ffffff", "#14181d"])
def test_every_colour_can_be_seen_in_both_themes(colour: str, page: str) -> None:
    def light(text: str) -> float:
        parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((light(colour), light(page)))
    assert (high + 0.05) / (low + 0.05) >= 3.0


@given(st.lists(st.text(max_size=200), max_size=5))
def test_hover_text_is_words_and_breaks_alone(lines: list[str]) -> None:
    made = hover(lines)
    assert not re.search(r"<(?!br>)", made)
    assert all(len(line) <= 64 * 6 for line in made.split("<br>"))
