"""What a million output tokens cost at an operating point. Pure.

    device seconds = 1e6 / (output tokens/s per device)
    cost           = device seconds / 3600 x price of one device for one hour

All devices of a deployment are paid for while it serves, whatever they do. Without a price, device
seconds put deployments on one kind of device into the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.config.schema import HardwareConfig
from sweeper.pareto.rule import PER_DEVICE

MILLION, HOUR_S = 1e6, 3600.0
DEVICE_SECONDS = "device_seconds_per_million_output_tokens"
COST = "cost_per_million_output_tokens"


@dataclass(frozen=True)
class Price:
    """What a device costs.

    Attributes:
        per_hour: of one device.
        currency: in which.
    """

    per_hour: float
    currency: str = "USD"

    @classmethod
    def of(cls, hardware: HardwareConfig) -> Price | None:
        """The configured price; None if there is none."""
        if hardware.price_per_hour is None:
            return None
        return cls(hardware.price_per_hour, hardware.currency)


def device_seconds(row: Mapping[str, Any]) -> float | None:
    """Seconds of a device that a million output tokens take; None if that was not measured."""
    served = row.get(PER_DEVICE)
    return MILLION / served if served else None


def costs(row: Mapping[str, Any], price: Price | None = None) -> dict[str, float]:
    """`DEVICE_SECONDS`, and with a price `COST` (in its currency); empty if not measured."""
    seconds = device_seconds(row)
    if seconds is None:
        return {}
    told = {DEVICE_SECONDS: seconds}
    return told if price is None else told | {COST: seconds / HOUR_S * price.per_hour}


def cost_text(row: Mapping[str, Any], price: Price | None) -> str:
    """``1.25 USD per million output tokens``, or the device seconds without a price."""
    told = costs(row, price)
    if not told:
        return "cost was not measured"
    if price is None:
        return f"{_number(told[DEVICE_SECONDS])} device seconds per million output tokens"
    return f"{_number(told[COST])} {price.currency} per million output tokens"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
