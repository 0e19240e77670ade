"""Text from logs and settings in the report: shown, and never markup, script, secret or control."""

from __future__ import annotations

import io
import json
import re

from sweeper.report.live import LiveView, ViewState, panel
from sweeper.report.tables import table
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Note, TrialEnded, TrialStarted
from sweeper.verdicts import Verdict
from tests.factories import outcome, point
from tests.report.test_html import Page, figures_of, render

TOKEN = "hf_" + "aB3dE" * 7
EVIL = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "<a href='javascript:alert(1)'>x</a>",
    "' onmouseover='alert(1)",
    "<!--<script>",
]


def hostile(*texts: str) -> list[TrialOutcome]:
    """A study with the texts wherever text from outside stands."""
    first = outcome(0)
    first.manifest["note"] = list(texts)
    outcomes = [first]
    for number, text in enumerate(texts, start=1):
        peak = [point(8, throughput=500 + number, e2e_p95_ms=100 + number)]
        outcomes.append(outcome(2 * number - 1, deployment={"flag.x": text}, points=peak))
        failed = outcome(2 * number, verdict=Verdict.INFRA, cause=text, remedy=text)
        outcomes.append(failed)
    return outcomes


def test_no_markup_gets_in() -> None:
    page = render(hostile(*EVIL))
    found, plain = Page(page), Page(render(hostile(*"abcdefgh"[: len(EVIL)])))
    assert sorted(found.tags) == sorted(plain.tags)
    assert found.outside == plain.outside
    # Plotly reads what it draws as HTML.
    drawn = json.dumps(figures_of(page))
    assert "flag.x" in drawn
    assert not any(markup in drawn for markup in ("<script", "<img", "<svg", "<a ", "<!--"))


def test_neither_secrets_nor_controls_get_in() -> None:
    page = render(hostile(f"token {TOKEN} \x1b[31m \x00 \u202e"))
    body = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert TOKEN not in page
    assert TOKEN not in json.dumps(figures_of(page))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", body)


def test_the_page_may_load_nothing_and_tell_nobody() -> None:
    page = render([outcome(0)])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "http" not in policy[1] and "connect-src" not in policy[1]
    # Only the two scripts of the page run, known by their hash; no code is made from text.
    scripts = re.search(r"script-src ([^;]*);", policy[1])
    assert scripts is not None
    assert re.fullmatch(r"('sha256-[A-Za-z0-9+/=]{44}' ?){2}", scripts[1])
    assert page.index("Content-Security-Policy") < page.index("<script")


def test_trust_in_the_models_code_is_said() -> None:
    trusting = outcome(0)
    trusting.manifest["model"] = {"trust_remote_code": True}
    assert "runs code that comes with the model" in Page(render([trusting])).words
    assert "runs code that comes" not in Page(render([outcome(0)])).words


def test_a_cell_is_text() -> None:
    assert "<span class=v>&lt;b&gt; ok</span></td>" in table(["x"], [["<b>\x1b[1m ok"]])


def test_the_terminal_gets_no_escape_and_no_secret() -> None:
    stream = io.StringIO()
    failed = outcome(1, verdict=Verdict.INFRA, cause=f"\x1b[2J\x1b]0;x\x07 {TOKEN} \x9b31m")
    with LiveView("s", stream) as view:
        view(TrialStarted(1, "search", {"a": "\x1b[31m"}, 0, 3))
        view(TrialEnded(failed))
        view(Note(f"note \x1b[5m{TOKEN}"))
    assert "note" in stream.getvalue()
    assert "\x1b" not in stream.getvalue() and "\x9b" not in stream.getvalue()
    assert TOKEN not in stream.getvalue()


def test_the_panel_gets_no_escape_either() -> None:
    from rich.console import Console

    state = ViewState(0.0)
    state.apply(TrialStarted(1, "search", {"a": f"\x1b[31m{TOKEN}"}, 0, 3), 0.0)
    state.apply(Note(f"\x1b]0;x\x07note {TOKEN}"), 0.0)
    stream = io.StringIO()
    Console(file=stream, width=200, no_color=True).print(panel("s", state, 1.0))
    assert "note" in stream.getvalue()
    assert "\x1b" not in stream.getvalue() and TOKEN not in stream.getvalue()


def test_a_journal_of_others_steers_nothing_and_what_is_written_holds_nothing() -> None:
    data = outcome(1, verdict=Verdict.INFRA, cause=f"\x1b[2Jbad {TOKEN}").to_dict()
    assert TOKEN not in str(data)
    data["deployment"] = {"\x1b[2Jx": "\x1b[5my"}
    read = TrialOutcome.from_dict(data)
    assert read.deployment == {"x": "y"}
    assert read.cause == "bad (hidden)"
