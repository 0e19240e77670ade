"""What a caller asks of a choice, checked. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeGuard

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.config.stored import as_now
from sweeper.config.suggest import did_you_mean
from sweeper.errors import ConfigError
from sweeper.pareto.cost import Price

LIMITS = tuple(item.name for item in fields(SloConfig))
SHARES = ("min_quality", "min_goodput_share")


def select_config(
    config: Mapping[str, Any], slo: Mapping[str, float | None] | None, prefer: str | None
) -> SelectConfig:
    """The study's own promise and preference, with those given in their place.

    Args:
        config: of the study as plain data; what is not there has its default.
        slo: limits; None keeps the study's own, an empty mapping makes none.
        prefer: None keeps the study's own.

    Raises:
        ConfigError: a limit that does not exist, or a value that is no positive number.
    """
    own = as_now(dict(config)).get("select")
    known = own if isinstance(own, Mapping) else {}
    limits = known.get("slo") or {} if slo is None else slo
    # An earlier or later version's own limits may have other names; a caller's may not.
    made = {name: limits[name] for name in LIMITS if name in limits}
    if slo is not None:
        for name, value in slo.items():
            _check(name, value)
    return SelectConfig(
        slo=SloConfig(**made), prefer=prefer or str(known.get("prefer") or SelectConfig.prefer)
    )


def price_of(config: Mapping[str, Any], per_hour: float | None) -> Price | None:
    """The price that is given, else the study's own; None if there is none.

    Raises:
        ConfigError: it is no positive number.
    """
    known = config.get("hardware")
    hardware = known if isinstance(known, Mapping) else {}
    if per_hour is None:
        per_hour = hardware.get("price_per_hour")
        if per_hour is None:
            return None
    if not _is_positive(per_hour):
        raise ConfigError(
            f"price_per_hour={per_hour!r} is not a positive number",
            "give the price of one device for one hour",
        )
    return Price(per_hour, str(hardware.get("currency") or Price.currency))


def _check(name: str, value: object) -> None:
    if name not in LIMITS:
        raise ConfigError(
            f"slo: there is no limit {name!r}", did_you_mean(str(name), LIMITS, what="limits")
        )
    is_share = name in SHARES
    if value is not None and not (_is_positive(value) and (value <= 1 or not is_share)):
        raise ConfigError(
            f"slo: {name}={value!r} is not a {'share of 1' if is_share else 'positive number'}",
            "give milliseconds for a latency, a number of tokens or requests a second for a rate, "
            "and a share between 0 and 1 for quality and goodput; None makes no promise",
        )


def _is_positive(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
