"""Files of three deployments, letter by letter: what changes is to be looked at, not to slip by."""

from __future__ import annotations

import pytest

from sweeper.export.registry import render_all
from tests.export.readers import unwrapped
from tests.export.sources import GOLDEN, SOURCES


@pytest.mark.parametrize("name", SOURCES)
def test_files_are_those_that_were_reviewed(name: str) -> None:
    rendered = {file: one.text for file, one in render_all(["all"], SOURCES[name]()).items()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (GOLDEN / name).iterdir()}
    assert set(rendered) == set(kept)
    for file, text in rendered.items():
        assert text == kept[file], f"{file}: `python -m tests.export.sources` writes it anew"


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_says_where_it_comes_from(name: str) -> None:
    source = SOURCES[name]()
    for file, one in render_all(["all"], source).items():
        text = unwrapped(one.text)
        for told in (source.study, "trial", "150", "8"):
            assert told in text.replace("149.7", "150"), file
        assert source.hardware in text.replace("\\", ""), file


def test_predicted_is_said_in_every_file() -> None:
    for file, one in render_all(["all"], SOURCES["predicted"]()).items():
        assert "predicted" in one.text.lower(), file
        assert "Recommended" not in one.text.replace('"recommendation"', ""), file
