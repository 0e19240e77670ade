"""docs/reading-the-report.md knows every part that a report has."""

from __future__ import annotations

import re

from sweeper.config.schema import SelectConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.html import report_html
from tests.docs.blocks import ROOT
from tests.factories import study


def test_every_part_of_a_report_is_on_the_page() -> None:
    outcomes = study()
    frame = points_frame(outcomes)
    html = report_html(
        frame, outcomes, recommend(frame, SelectConfig()), "x", commands=[("run it", "make sweep")]
    )
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    assert len(titles) > 5
    page = (ROOT / "docs/reading-the-report.md").read_text()
    missing = [title for title in titles if f"| {title} |" not in page]
    assert not missing, f"docs/reading-the-report.md does not tell of {missing}"
