"""Python blocks of the docs run, page by page, in the folder the commands are tried in."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import sweeper
from sweeper.notebook.frames import LAUNCH_COLUMNS, TRIAL_COLUMNS
from sweeper.notebook.requests import COLUMNS as REQUEST_COLUMNS
from sweeper.pareto.points import FIXED_COLUMNS
from tests.docs.blocks import PAGES, ROOT, blocks_of

# A page whose blocks are files to be put together, tried by a test of its own.
ELSEWHERE = {"adding-an-engine.md": "tests/docs/test_adding_an_engine.py"}
WITH_PYTHON = [
    page
    for page in PAGES
    if page.name not in ELSEWHERE and any(block.language == "python" for block in blocks_of(page))
]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_a_pages_examples_run_in_their_order(page: Path, desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks_of(page):
        if block.language == "python":
            # Blank lines, so that a traceback names the page's own line.
            text = "\n" * (block.line - 1) + block.text
            exec(compile(text, str(page), "exec"), names)


def test_pages_that_run_elsewhere_are_run_there() -> None:
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / test).read_text()


@pytest.mark.parametrize(
    ("frame", "columns"),
    [
        ("trials", TRIAL_COLUMNS),
        ("launches", LAUNCH_COLUMNS),
        ("points", FIXED_COLUMNS),
        ("requests", REQUEST_COLUMNS),
    ],
)
def test_every_column_is_on_the_page(frame: str, columns: list[str]) -> None:
    text = (ROOT / "docs/python.md").read_text()
    missing = [name for name in columns if f"`{name}`" not in text]
    assert not missing, f"docs/python.md does not tell the columns {missing} of {frame}"


def test_the_first_example_says_what_it_prints(desk: Path) -> None:
    study = sweeper.load_study(ROOT / "studies/example-smollm2-cpu")
    told = "<study example-smollm2-cpu: 7 trials, 15 launches,"
    assert repr(study).startswith(told)
    assert told in (ROOT / "docs/python.md").read_text()
    assert isinstance(study.trials, pd.DataFrame)
