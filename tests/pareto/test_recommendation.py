"""Why a figure is uncertain, in words."""

from __future__ import annotations

import pytest

from sweeper.pareto.recommendation import confidence_sentence


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ({"n": 8}, "rests on few requests (n=8)"),
        ({"n": 500, "saturated": True}, "depends on how long one measures"),
        ({"n": 500}, "before the server had settled"),
    ],
)
def test_each_reason_for_doubt_has_its_own_words(point: dict[str, object], says: str) -> None:
    row = {"low_confidence": "e2e_p95_ms tpot_p95_ms", **point}
    assert says in confidence_sentence(row, "e2e_p95_ms", confirmed=True)
    assert "e2e" not in confidence_sentence({**row, "low_confidence": ""}, "e2e_p95_ms", True)
