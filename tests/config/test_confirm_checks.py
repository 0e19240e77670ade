from __future__ import annotations

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import SweeperConfig
from sweeper.config.search_checks import check_confirm
from sweeper.errors import ConfigError
from tests.config.test_identity import identity_of


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"candidates": 0}, "confirm.candidates=0"),
        ({"repeats": -1}, "confirm.repeats=-1"),
        ({"repeats": 2}, "do not tell a gain from noise"),
        ({"repeats": 10}, "budget.launches=20 has no room for confirm.repeats=10"),
    ],
)
def test_what_would_confirm_nothing_is_refused(settings: dict[str, int], says: str) -> None:
    cfg = SweeperConfig()
    for name, value in settings.items():
        setattr(cfg.confirm, name, value)
    with pytest.raises(ConfigError, match=says) as refused:
        check_confirm(cfg)
    assert "confirm." in refused.value.remedy


@pytest.mark.parametrize("repeats", [None, 0, 3, 9])
def test_what_would_is_taken(repeats: int | None) -> None:
    cfg = SweeperConfig()
    cfg.confirm.repeats = repeats
    check_confirm(cfg)


def test_confirmation_is_no_part_of_a_studys_identity() -> None:
    """So that a finished study can be confirmed."""
    changed = ("confirm.repeats=3", "confirm.candidates=1", "budget.launches=40")
    assert identity_of(*changed) == identity_of()
    assert compose(["confirm=none"]).confirm.repeats == 0
