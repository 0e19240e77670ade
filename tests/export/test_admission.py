from __future__ import annotations

from typing import Any

import pytest

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.export.admission import limit_of, sentence
from tests.export.conftest import make_source
from tests.factories import open_load, open_study, outcome, point


def test_the_limit_is_the_concurrency_that_was_held() -> None:
    chosen = make_source().recommendation
    assert limit_of(chosen) == 8
    assert sentence(chosen, 8).startswith("Admission limit: 8 concurrent requests a server.")
    assert "never refuses" in sentence(chosen, 8)


def test_an_average_is_no_limit_of_concurrency() -> None:
    slo = SelectConfig(slo=SloConfig(e2e_p95_ms=500))
    chosen = make_source(outcomes=open_study(), select=slo).recommendation
    assert limit_of(chosen) is None
    assert "2 requests/s a server" in sentence(chosen, None)


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ({"kind": "batch", "concurrency": 16}, "held nothing steady"),
        (open_load(4.0, saturated=True), "could not keep up"),
        ({"kind": "closed", "concurrency": 64, "saturated": True}, "could not keep up"),
    ],
)
def test_where_no_limit_follows_that_is_said(load: dict[str, Any], told: str) -> None:
    chosen = make_source(outcomes=[outcome(0, points=[point(load=load)])]).recommendation
    assert limit_of(chosen) is None
    assert told in sentence(chosen, None)
