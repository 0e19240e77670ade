"""Points whose figures are equal to the last digit: one line for all of them. Pure.

Where a table or a simulator answers, every deployment that sets a parameter without effect comes to
the same figures. A front of five lines would be one of fifty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sweeper.report.words import deployment_text

Row = dict[str, Any]


def merged(
    rows: Sequence[Row], metrics: Sequence[str], chosen: tuple[int, str] | None = None
) -> list[Row]:
    """Rows with equal load and figures as one, which says in ``alike`` for how many more it stands.

    That one is the recommended, else the one with the fewest settings, else the earliest.

    Args:
        rows: of the front, in the order that they are shown in.
        metrics: names of the figures that are compared.
        chosen: trial and level of the recommended point.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        figures = tuple(row.get(name) for name in metrics)
        groups.setdefault((row["level"], row.get("tie"), figures), []).append(row)

    def rank(row: Row) -> tuple[bool, int, int]:
        is_chosen = (int(row["trial"]), str(row["level"])) == chosen
        return not is_chosen, len(row["deployment"]), int(row["trial"])

    shown = [(min(group, key=rank), len(group) - 1) for group in groups.values()]
    return [{**row, "alike": others} for row, others in shown]


def with_alike(row: Mapping[str, Any]) -> str:
    """The deployment of a row of `merged`, and for how many others it stands."""
    text, count = deployment_text(row["deployment"]), row.get("alike", 0)
    return f"{text} (and {count} with the same figures)" if count else text
