"""Figures of the page: their places in it, and their data packed beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


class Slots:
    """Figures in the order of the page.

    A figure with several views is kept as its first one, and what each of the others changes.
    """

    def __init__(self) -> None:
        self._packed: dict[str, Any] = {}

    def place(
        self,
        name: str,
        views: Sequence[tuple[str, Mapping[str, Any] | None]],
        caption: str,
        switch: str = "Show",
    ) -> str:
        """Where a figure stands, as HTML; empty without one.

        Args:
            name: unique in the page; the element's is ``plot-NAME``.
            views: (label, data and layout of plotly); those without data are left out. All have the
                same traces.
            caption: how to read it, plain words.
            switch: what the choice among views is called.
        """
        drawn = [(label, made) for label, made in views if made is not None]
        if not drawn:
            return ""
        first = drawn[0][1]
        changes = [_changes(first, other) for _, other in drawn]
        self._packed[f"plot-{name}"] = {"figure": first, "views": changes}
        height = int(first["layout"].get("height", 450))
        return (
            f"<figure>{_switch(name, switch, [label for label, _ in drawn])}"
            f'<div class=plot id="plot-{escape(name)}" style="height:{height}px" role=img '
            f'aria-label="{escape(caption)}"></div>'
            "<p class=picked aria-live=polite hidden></p>"
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def packed(self) -> str:
        """All figures as JSON."""
        return json.dumps(self._packed, separators=(",", ":"), allow_nan=False, ensure_ascii=False)

    @property
    def any(self) -> bool:
        """Whether there is a figure at all."""
        return bool(self._packed)


def _switch(name: str, title: str, labels: Sequence[str]) -> str:
    if len(labels) < 2:
        return ""
    choices = "".join(
        f'<input type=radio name="view-{escape(name)}" id="view-{escape(name)}-{place}" '
        f"value={place}{' checked' if place == 0 else ''}>"
        f'<label for="view-{escape(name)}-{place}">{escape(label)}</label>'
        for place, label in enumerate(labels)
    )
    return f"<fieldset class=switch><legend>{escape(title)}</legend>{choices}</fieldset>"


def _changes(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the other out of the first, down to the settings of a trace or layout."""
    data = [
        _differing(ours, theirs) for ours, theirs in zip(first["data"], other["data"], strict=True)
    ]
    return {"data": data, "layout": _differing(first["layout"], other["layout"])}


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    gone = {name: None for name in ours if name not in theirs}
    return gone | {name: value for name, value in theirs.items() if ours.get(name) != value}
