"""Every setting that README and docs name exists, by its key and by its option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sweeper.config.fields import find
from sweeper.config.location import groups, options
from sweeper.space.catalogue import KNOWN
from tests.docs.blocks import PAGES, ROOT

_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_DOTTED = re.compile(r"(?<![\w./-])([a-z_]+(?:\.[A-Za-z_][A-Za-z0-9_]*)+)(?=$|[\s=,\])}:])")
_GROUP = re.compile(r"(?<![\w./-])([a-z_]+)=([a-z][a-z0-9_]*)(?=$|[\s,\]])")
NOT_SETTINGS = ("sweeper.", "study.", "sklearn.", "best.", "plotly.", "trials.", "config.", "np.")
"""Beginnings of dotted names that are code or files."""
FILES = re.compile(r"\.(py|md|yaml|yml|json|jsonl|csv|html|log|db|sh|parquet|txt|gz|toml|sock|j2)$")
FREE = {"engine": "example", "model": "NAME"}
"""Options that stand for one of the reader's own."""


def keys_of(page: Path) -> set[str]:
    """Dotted names between backticks whose first part is a group of the configuration."""
    found = set()
    for code in _CODE.findall(page.read_text()):
        for name in _DOTTED.findall(code):
            if not name.startswith(NOT_SETTINGS) and not FILES.search(name):
                found.add(name)
    return {name for name in found if name.split(".")[0] in groups()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_keys_exist(page: Path) -> None:
    # `quantize.group_size` is a parameter of a space as well.
    unknown = [key for key in sorted(keys_of(page)) if find(key) is None and key not in KNOWN]
    assert not unknown, f"{page.name} names settings that do not exist: {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_of_groups_exist(page: Path) -> None:
    codes = _CODE.findall(page.read_text())
    named = {pair for code in codes for pair in _GROUP.findall(code) if pair[0] in groups()}
    unknown = [
        f"{group}={option}"
        for group, option in sorted(named)
        if option not in options(group) and FREE.get(group) != option
    ]
    assert not unknown, f"{page.name} names options that do not exist: {unknown}"


def test_a_key_that_does_not_exist_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Set `budget.lanches=3`, not `sweeper.errors` nor `load.csv`.\n")
    assert keys_of(page) == {"budget.lanches"} and find("budget.lanches") is None
    assert find("budget.launches") is not None and (ROOT / "docs").is_dir()
