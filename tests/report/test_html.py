from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.errors import NoFeasibleTrialError
from sweeper.pareto.points import points_frame, row_dict
from sweeper.pareto.select import recommend
from sweeper.report.html import report_html, write_report
from sweeper.report.plots.hover import point_text
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import open_study, outcome, point, study

EVIL = "<script>alert('x')</script>"


class Page(HTMLParser):
    """Tags that were opened, the visible text, and addresses outside the file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self.outside: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        links = [v for k, v in attrs if k in ("src", "href") and v]
        self.outside += [link for link in links if not link.startswith("#")]

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.words += data


def render(outcomes: list[TrialOutcome], **slo: float) -> str:
    frame = points_frame(outcomes)
    try:
        found = recommend(frame, SelectConfig(slo=SloConfig(**slo)))
    except NoFeasibleTrialError:
        found = None
    return report_html(frame, outcomes, found, "tiny", "the budget of 20 launches is used up")


def figures_of(page: str) -> dict[str, Any]:
    """The figures that lie packed in a page, by the name of their element."""
    packed = re.search(r'id="figures-packed">([^<]*)<', page)
    if packed is None:
        return {}
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return found


def test_report_tells_the_whole_story_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    frame = points_frame(study())
    found = recommend(frame, SelectConfig(slo=SloConfig(e2e_p95_ms=1000)))
    write_report(path, frame, study(), found, "tiny", "budget used up")
    page = Page(path.read_text(encoding="utf-8"))
    assert page.outside == []
    assert found.headline in page.words
    for expected in ("5 trials", "4 launches", "CAPACITY", "No available memory", "max_num_seqs"):
        assert expected in page.words
    assert '"version": "0.32.0"' in page.words
    assert "name vllm, version 0.32.0" in page.words


def test_text_from_outside_is_escaped_everywhere() -> None:
    outcomes = [
        outcome(0),
        outcome(1, deployment={"flag.x": EVIL}, points=[point(8, throughput=500, e2e_p95_ms=1)]),
        outcome(2, verdict=Verdict.INFRA, cause=EVIL, remedy=EVIL),
        outcome(3, deployment={"flag.y": EVIL}, points=[point(reasons_like=1.0)], manifest={}),
    ]
    outcomes[0].manifest["note"] = EVIL
    page = Page(render(outcomes))
    plain = Page(render([outcome(0), outcome(1, deployment={"flag.x": "a"})]))
    assert page.tags.count("script") == plain.tags.count("script")
    assert EVIL in page.words
    assert "<script>" not in point_text({**points_frame(outcomes).iloc[1].to_dict()})


def test_nothing_feasible_is_said() -> None:
    page = Page(render([outcome(0, verdict=Verdict.CAPACITY)]))
    assert "No feasible operating point" in page.words


def test_broken_promise_is_not_called_recommended() -> None:
    page = Page(render(study(), e2e_p95_ms=1))
    assert "Nearest to the SLO" in page.words
    assert "Recommended deployment" not in page.words


def test_levels_are_shown_by_their_names_and_saturation_is_marked() -> None:
    page = Page(render(open_study(), e2e_p95_ms=500))
    assert "At 2 requests/s (poisson), n=64" in page.words
    assert "4 requests/s (poisson), saturated" in page.words
    assert "None" not in page.words
    assert "nan" not in page.words


def test_speed_of_light_is_marked_as_predicted() -> None:
    outcomes = study()
    for trial in outcomes[:2]:
        for p in trial.points:
            p.predicted = {"tpot_floor_ms": 4.25, "bandwidth_utilization_share": 0.625}
    words = Page(render(outcomes, e2e_p95_ms=1000)).words
    table = words.partition("Speed of light (predicted)")[2]
    assert "TPOT ms, at least" in table
    assert "4.25" in table
    assert "0.625" in table
    row = points_frame(outcomes).iloc[0].to_dict()
    assert "predicted: TPOT ms, at least: 4.25" in point_text(row_dict(row))
    assert "Speed of light (predicted)" not in Page(render(study())).words


def test_what_did_not_work_stands_by_cause_with_what_to_change() -> None:
    failures = [
        outcome(
            n, deployment={"max_num_seqs": n}, verdict=Verdict.CAPACITY, cause=EVIL,
            learnt={"rule": "no_room", "needed_gib": 5.0, "available_gib": 4.0},
        )
        for n in (1, 2)
    ]  # fmt: skip
    words = Page(render([outcome(0), *failures])).words
    assert "No deployment but the default worked: all 2 others failed." in words
    table = words.partition("What did not work, by cause")[2].partition("All trials")[0]
    for part in ("no room", "2", "1 GiB missing (5 needed, 4 there)", "raise gpu_memory", EVIL):
        assert part in table
    nothing = Page(render(failures)).words
    assert nothing.index("What did not work") < nothing.index("All 2 trials")
    assert "What did not work" not in Page(render([outcome(0), outcome(1)])).words


def test_figures_are_packed_and_drawn_where_they_stand() -> None:
    page = render(study(), e2e_p95_ms=1000)
    figures = figures_of(page)
    assert set(figures) == {
        "plot-front",
        "plot-ladder",
        "plot-trade",
        "plot-parallel",
        "plot-timeline",
    }
    for name, drawn in figures.items():
        assert f'id="{name}"' in page
        assert "template" not in drawn["figure"]["layout"]
    # The switch has a view for each latency, and each says only what it changes.
    labels = re.findall(r"view-front-\d+\">([^<]*)</label>", page)
    assert labels == ["TTFT P95", "TPOT P95", "E2E P95"]
    first, second, _ = figures["plot-front"]["views"]
    assert first == {"data": [{} for _ in first["data"]], "layout": {}}
    assert "x" in second["data"][0] and "y" not in second["data"][0]


def test_the_same_study_gives_the_same_page() -> None:
    assert render(study()) == render(study())


def test_without_a_figure_there_is_no_plotly() -> None:
    nothing = outcome(0, verdict=Verdict.INFEASIBLE_CONFIG, launched=False, timings_s={})
    page = render([nothing])
    assert figures_of(page) == {}
    assert len(page) < 60_000
    assert "class=plot" not in page


def test_commands_are_shown_as_they_are_typed() -> None:
    frame = points_frame(study())
    typed = [("Again:", "python -m sweeper study=x 'load.concurrency=[1,8]' <b>")]
    page = report_html(frame, study(), None, "x", commands=typed)
    assert "study=x &#x27;load.concurrency=[1,8]&#x27; &lt;b&gt;</pre>" in page
    assert "How to reproduce" not in Page(render(study())).words


def test_what_is_replayed_says_so_and_from_where() -> None:
    outcomes = study()
    details = {"source": "replayed from table.csv, measured by others"}
    outcomes[0].manifest = {"engine": {"name": "replay", "details": details}}
    words = Page(render(outcomes)).words
    assert "Nothing was launched: every answer is replayed from table.csv" in words
    assert "Nothing was launched" not in Page(render(study())).words


def test_a_gain_that_was_measured_once_is_not_confirmed() -> None:
    words = Page(render(study(), e2e_p95_ms=1000)).words
    assert "Not confirmed. Measured once: the gain may be luck or noise." in words


def test_long_tables_are_folded_and_short_ones_are_not() -> None:
    many = [outcome(n, deployment={"max_num_seqs": n} if n else None) for n in range(14)]
    assert "<details><summary>All 14 trials" in render(many)
    assert "<details open><summary>All 5 trials" in render(study())
