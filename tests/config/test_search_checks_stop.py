"""Early stops are checked before anything starts."""

from __future__ import annotations

import pytest

from sweeper.config.schema import StopConfig, SweeperConfig
from sweeper.config.search_checks import check_stop
from sweeper.errors import ConfigError


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        (StopConfig(after=1), "stop.after=1"),
        (StopConfig(margin_share=1.5), "stop.margin_share=1.5"),
        (StopConfig(margin_share=-0.1), "stop.margin_share=-0.1"),
    ],
)
def test_what_makes_no_sense_is_refused(stop: StopConfig, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        check_stop(SweeperConfig(stop=stop))


def test_the_default_and_a_noiseless_engine_are_fine() -> None:
    check_stop(SweeperConfig())
    check_stop(SweeperConfig(stop=StopConfig(margin_share=0.0)))
