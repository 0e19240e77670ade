"""The trade in the report's HTML, its figure, and in the terminal."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sweeper.report.plots.style import as_figure
from sweeper.report.plots.trade import draw, figure
from sweeper.report.trade.section import trade_section
from sweeper.report.trade.table import trade
from sweeper.report.trade.text import render_trade
from sweeper.verdicts import Verdict
from tests.report.test_html import Page, render
from tests.report.traded import made, score, traded, traded_study

EVIL = "<script>alert('x')</script>"
SECTION = trade_section(trade(traded_study()))


def cells(section: str, name: str) -> list[str]:
    """Words of the row whose first cell begins with a name."""
    rows = [Page(f"<table><tr{row}").words for row in section.split("<tr")[2:]]
    (found,) = [row for row in rows if row.startswith(name)]
    return [found]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("none (baseline)", ["reference", "97.4%", "180", "x1.00", "200,000"]),
        ("w8a8", ["-0.6 % ± 0.5 %", "x1.45", "[1.37,\u00a01.54]", "0.17", "x0.68",
                  "another memory limit", "2 min 28 s", "8 bits", "max_num_seqs=4"]),
        ("w4a16llm", ["4 bits, group 64", "best of 2", "1 min 32 s", "reused", "207,000"]),
        ("int8", ["no change (-0.1 % ± 0.4 %)", "-0.002 ± 0.008 nats a token", "engine"]),
        ("awq", ["below the floor", "-9.300 ± 0.008 nats", "QUALITY_FAIL: log-likelihood",
                 "Remedy: choose a milder quantization", "autoawq"]),
        ("gptq", ["not measured", "INFEASIBLE_CONFIG, not launched: auto_gptq refuses"]),
    ],
)  # fmt: skip
def test_a_row_tells_what_was_bought_and_what_it_cost(name: str, told: list[str]) -> None:
    (words,) = cells(SECTION, name)
    for part in told:
        assert part in words


def test_broken_output_is_crossed_out_and_there() -> None:
    assert SECTION.count('<tr class="crossed">') == 1
    assert "<small>QUALITY_FAIL: log-likelihood" in SECTION
    assert "concurrency 32" in SECTION
    assert "another memory limit" in SECTION.partition("<table")[0]


def test_the_section_is_in_the_report_only_where_there_is_a_choice() -> None:
    title = "What quantization buys"
    assert title in Page(render(traded_study())).words
    alone = [traded(0), traded(1, deployment={"max_num_seqs": 4})]
    assert title not in Page(render(alone)).words
    assert render_trade(trade(alone)) == ""


def test_text_from_outside_is_escaped() -> None:
    hostile = traded(
        1, deployment={"quantization": EVIL, "flag.x": EVIL}, quality=score(),
        made_here=made("w4a16", EVIL), verdict=Verdict.QUALITY_FAIL, cause=EVIL, remedy=EVIL,
    )  # fmt: skip
    works = replace(hostile, number=2, verdict=Verdict.OK)
    found = trade([traded(0, quality=score(se=0.0)), hostile, works])
    assert EVIL not in trade_section(found)
    drawn = figure([traded(0, quality=score(se=0.0)), hostile, works])
    shown = "".join(f"{trace.name}{trace.text}{trace.hovertext}" for trace in drawn.data)
    assert "<script" not in shown
    assert "\x1b" not in render_trade(trade([traded(0), replace(hostile, cause="\x1b[2J")]))


def test_the_figure_has_a_mark_a_row_as_large_as_its_checkpoint() -> None:
    marks = {trace.name: trace for trace in figure(traded_study()).data}
    assert len(marks) == 8  # what was neither refused nor failed before it was measured
    small, large = marks["w4a16"], marks["none, other settings"]
    assert small.marker.size < large.marker.size
    assert list(small.x) == pytest.approx([-5.0])
    assert list(small.y) == pytest.approx([234])
    assert small.error_x.array[0] == pytest.approx(1.96 * 0.7)
    assert (small.error_y.arrayminus[0], small.error_y.array[0]) == pytest.approx((7.02, 7.02))
    assert marks["none (baseline)"].marker.symbol == "diamond"
    assert marks["none (baseline)"].error_x.array[0] == 0.0
    assert marks["awq: QUALITY_FAIL"].marker.symbol == "x"


def test_a_mark_far_off_stands_at_the_edge_and_tells_its_figure() -> None:
    made = figure(traded_study())
    (broken,) = [trace for trace in made.data if "QUALITY_FAIL" in trace.name]
    assert broken.x[0] == made.layout.xaxis.range[0] > -95
    assert "-95" in broken.text[0]


def test_without_quality_there_is_a_table_and_no_figure() -> None:
    found = trade([traded(0), traded(1, deployment={"quantization": "x"})])
    assert draw(found) is None
    assert "not measured" in trade_section(found)
    assert "<figure" not in trade_section(found)


def test_another_quality_is_told_by_its_name_and_unit() -> None:
    def read(nats: float, change: float) -> dict[str, object]:
        figures = {"nats_per_token": nats, "nats_se": 0.01, "perplexity": math.exp(nats)}
        return {
            "ranked_by": "perplexity",
            "perplexity": {
                **figures, "windows": 400, "change_nats": change, "change_se_nats": 0.005,
            },
        }  # fmt: skip

    found = trade(
        [
            traded(0, quality=score(se=0.0, **read(2.0, 0.0))),
            traded(1, deployment={"quantization": "x"}, quality=score(**read(2.1, 0.1))),
        ]
    )
    words = Page(trade_section(found)).words
    assert "Quality is perplexity." in words
    assert "-0.100 ± 0.010 nats a token" in words
    assert "8.17" in words
    assert "perplexity, nats a token" in as_figure(draw(found)).layout.xaxis.title.text


def test_the_terminal_tells_it_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = render_trade(trade(traded_study()))
    line = next(line for line in text.splitlines() if line.startswith(" w4a16 "))
    for part in ("-5.0 % ± 1.4 %", "234 x1.30", "26 x1.30", "2,308 x0.77", "0.12 x0.48", "x1.03"):
        assert part in line
    assert "QUALITY_FAIL: log-likelihood" in text
    assert "concurrency 32" in text


def test_what_is_stored_as_the_defaults_is_told_from_them() -> None:
    cells = SECTION.split("<span class=v>")
    names = [cell.split("<small>")[0] for cell in cells if cell.startswith("none")]
    assert names == ["none (baseline)", "none, other settings", "none kv_cache_dtype=fp8"]
    assert "Other settings" in SECTION
    alone = [traded(0), traded(1, deployment={"quantization": "x"})]
    assert "ther settings" not in trade_section(trade(alone))
