"""Every relative link of README and docs leads somewhere, and every page can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT

MORE = (
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks/README.md",
    *(ROOT / "docs/decisions").glob("*.md"),
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.MULTILINE)


def links_of(page: Path) -> list[str]:
    """Targets in Markdown links, those inside code left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", text))


def anchors_of(page: Path) -> set[str]:
    """Names of a page's headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(page.read_text())
    }


@pytest.mark.parametrize("page", [*PAGES, *MORE], ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in links_of(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.name} links to {target}"
        assert found.is_relative_to(ROOT), f"{page.name} links out of the project: {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors_of(found), f"{page.name}: {found.name} has no #{anchor}"


def test_every_page_is_in_the_index() -> None:
    index = {(ROOT / "docs" / target).resolve() for target in links_of(ROOT / "docs/README.md")}
    pages = {page for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"}
    assert pages <= index, f"docs/README.md does not name {sorted(p.name for p in pages - index)}"
