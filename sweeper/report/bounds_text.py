"""What failed launches taught a study, as text and as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sweeper.report.terminal import words_table
from sweeper.search.bounds.learn import Lessons

HOLDS, DROPPED = "holds", "dropped"


def render_bounds(lessons: Lessons, refused: Mapping[str, int], study: str) -> str:
    """Every bound with its region, its reason, and how many proposals it refused.

    Args:
        lessons: of the study.
        refused: id of a bound → deployments that it refused.
        study: its name, for the commands.
    """
    rows = [
        (
            bound["id"],
            bound["state"],
            str(bound["refused"]),
            f"{bound['region']}: {bound['reason']}",
        )
        for bound in _rows(lessons, refused)
    ]
    if not rows:
        return "learnt: nothing yet that speaks against other deployments"
    title = "learnt: what is not launched because of a trial that failed"
    shown = words_table(title, ["bound", "state", "refused", "region and reason"], rows)
    return (
        f"{shown}\nto launch such deployments all the same: "
        f"python -m sweeper bounds study={study} drop=ID"
    )


def bounds_json(lessons: Lessons, refused: Mapping[str, int]) -> str:
    """The same as a JSON list."""
    return json.dumps(list(_rows(lessons, refused)), indent=2, ensure_ascii=False)


def _rows(lessons: Lessons, refused: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    contradicted = {bound.id: number for bound, number in lessons.contradicted}
    dropped = {bound.id for bound in lessons.dropped}
    for bound in lessons.everything:
        state = DROPPED if bound.id in dropped else HOLDS
        if bound.id in contradicted:
            state = f"contradicted by trial {contradicted[bound.id]}"
        yield {
            "id": bound.id,
            "rule": bound.rule,
            "trial": bound.trial,
            "verdict": bound.verdict,
            "state": state,
            "refused": refused.get(bound.id, 0),
            "region": bound.region,
            "reason": bound.reason,
            "limits": [
                {
                    "parameter": limit.parameter,
                    "relation": str(limit.relation),
                    "value": limit.value,
                }
                for limit in bound.limits
            ],
        }
