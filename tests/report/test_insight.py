"""What a study teaches, as it stands in both reports."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import LoadConfig, QualityConfig, SelectConfig, SweeperConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.html import report_html
from sweeper.report.importance import insight as insight_module
from sweeper.report.importance.compute import Importance
from sweeper.report.importance.insight import Insight, understand
from sweeper.report.importance.section import insight_markdown, insight_section
from sweeper.report.summary_md import report_markdown
from sweeper.space.model import CATEGORICAL, Parameter, Space
from sweeper.trial.outcome import TrialOutcome
from tests.factories import outcome, point, study

SPACE = Space("s", (Parameter("max_num_seqs", CATEGORICAL, ("default", 8, 16, 32)),))
ONE = Importance("max_num_seqs", 0.8, 0.6, 0.9, True, "", 12, 32)
OTHER = Importance("drafts", 0.1, 0.0, 0.3, False, "speculative=ngram", 9, 4)
FOUND = Insight("The default is <b>slow</b>.", 12, {"throughput": [ONE, OTHER]})


@pytest.fixture
def few_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to tell what is plain, in a fraction of the time."""
    monkeypatch.setattr("sweeper.report.importance.compute.FORESTS", 5)


def config() -> SweeperConfig:
    return SweeperConfig(
        load=LoadConfig(concurrency=[1, 8, 32]), quality=QualityConfig(kind="none")
    )


def many() -> list[TrialOutcome]:
    made = []
    for number in range(13):
        value = ("default", 8, 16, 32)[number % 4]
        speed = {"default": 100, 8: 50, 16: 90, 32: 200}[value] + number / 10
        deployment = {} if value == "default" else {"max_num_seqs": value}
        points = [point(8, throughput=speed, e2e_p95_ms=90000 / speed)]
        one = outcome(number, deployment=deployment, points=points)
        one.deployment_hash = str(number)
        made.append(one)
    return made


@pytest.mark.usefixtures("few_forests")
def test_a_study_says_what_mattered_to_which_figure() -> None:
    trials = many()
    chosen = recommend(points_frame(trials), SelectConfig())
    found = understand(config(), SPACE, trials, chosen)
    assert found.trials == 13
    assert list(found.tables) == [
        "area under the load curve",
        "output tokens/s per device at concurrency 8",
        "E2E P95 ms at concurrency 8",
    ]
    assert all(one.matters and one.best == 32 for ones in found.tables.values() for one in ones)
    assert "For area under the load curve: max_num_seqs." in found.verdict


@pytest.mark.usefixtures("few_forests")
def test_a_cut_launch_counts_at_the_level_it_was_driven_at() -> None:
    trials = many()
    trials[5].partial = "cut"
    chosen = recommend(points_frame(trials), SelectConfig())
    tables = understand(config(), SPACE, trials, chosen).tables
    assert [ones[0].trials for ones in tables.values()] == [12, 13, 13]


def test_a_small_study_says_that_it_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("nothing is computed from so few")

    monkeypatch.setattr(insight_module, "importances", never)
    found = understand(config(), SPACE, study(), None)
    assert (
        found.too_few and "Too few trials" in found.verdict and "3 measured whole" in found.verdict
    )
    assert "Too few trials" in insight_section(found) and "<table" not in insight_section(found)
    assert "Too few trials" in insight_markdown(found)


def test_the_section_has_paragraph_figure_and_table_and_no_markup_from_outside() -> None:
    html = insight_section(FOUND, "<figure>here</figure>")
    assert "<figure>here</figure>" in html and "60% to 90%" in html
    assert "9, where speculative=ngram" in html and "within noise" in html
    assert "Within noise everywhere: drafts." in html


def test_the_markdown_report_tells_verdict_reason_and_front() -> None:
    trials = study()
    frame = points_frame(trials)
    chosen = recommend(frame, SelectConfig())
    text = report_markdown(frame, study(), chosen, "tiny", "budget of 5 launches used", FOUND)
    assert text.startswith("# tiny\n\nvllm 0.32.0\n\n**")
    assert "budget of 5 launches used" in text and "Not confirmed. Measured once" in text
    assert "## What did not work, by cause" in text and "## Conditions" in text
    assert "The default is \\<b\\>slow\\</b\\>." in text
    assert "| throughput | max_num_seqs | 80% | 60% to 90% | matters | 32 | 12 |" in text
    assert "## Pareto front" in text
    nothing = report_markdown(points_frame([]), [], None, "tiny", "stopped", Insight())
    assert "No feasible operating point" in nothing and "Pareto" not in nothing


def test_the_html_report_has_the_section_where_it_is_given() -> None:
    frame = points_frame(study())
    chosen = recommend(frame, SelectConfig())
    page = report_html(frame, study(), chosen, "tiny", insight=FOUND)
    assert "Why it wins" in page
    assert "The default is &lt;b&gt;slow&lt;/b&gt;." in page
    assert "Why it wins" not in report_html(frame, study(), chosen, "tiny")
