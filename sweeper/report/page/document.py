"""The frame of the page: head, policy, navigation, and plotly packed into it.

Plotly's own file is some 5 MB. Packed it is a third of that, and every browser since 2023 can
unpack it (`DecompressionStream`): so the page stays one file, needs no network, and can be mailed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

from sweeper.redaction import shown
from sweeper.report.page.slots import Slots


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        name: of its anchor.
        title: its heading, and its entry in the navigation.
        body: HTML; a section without one is left out.
    """

    name: str
    title: str
    body: str


def document(title: str, opening: str, sections: Sequence[Section], slots: Slots) -> str:
    """The whole page.

    Args:
        title: of the study, any text.
        opening: HTML above the navigation.
        sections: in their order.
        slots: the figures that stand in them.
    """
    told = [section for section in sections if section.body]
    entries = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in told)
    body = "\n".join(
        f'<section id="{one.name}"><h2>{escape(one.title)}</h2>\n{one.body}</section>'
        for one in told
    )
    name = escape(shown(title))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(with_plotly=slots.any)}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{name} - sweeper</title>\n<style>{_asset('style.css')}</style></head>\n<body>"
        f"<header>{opening}<nav aria-label=Contents><ul>{entries}</ul></nav></header>\n"
        f"<main>\n{body}\n</main>\n"
        "<footer><p>Made by sweeper. One file, nothing is loaded from anywhere.</p></footer>\n"
        f"{_scripts(slots)}</body></html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files("sweeper.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly() -> tuple[str, str]:
    """(plotly's code packed, its hash as a policy wants it)."""
    from plotly.offline import get_plotlyjs

    code = str(get_plotlyjs())
    return _packed(code), _hash(code)


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def _hash(code: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")


def _policy(*, with_plotly: bool) -> str:
    """What the page may do: run these two scripts, load nothing, tell nobody.

    Were something in it to become markup all the same, it could not run.
    """
    hashes = [_hash(_asset("script.js")), *([_plotly()[1]] if with_plotly else [])]
    scripts = " ".join(f"'{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )


def _scripts(slots: Slots) -> str:
    if not slots.any:
        return f"<script>{_asset('script.js')}</script>"
    return (
        f'<script type="text/plain" id="figures-packed">{_packed(slots.packed())}</script>\n'
        f'<script type="text/plain" id="plotly-packed">{_plotly()[0]}</script>\n'
        f"<script>{_asset('script.js')}</script>\n"
        "<noscript><p>The figures need JavaScript. The tables have their numbers.</p></noscript>"
    )
