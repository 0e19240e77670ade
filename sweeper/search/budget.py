"""What a study has spent, when that is enough, and how long it will take yet. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.config.schema import BudgetConfig
from sweeper.trial.outcome import TrialOutcome

HOUR_S = 3600.0
_WITHIN_80_PERCENT = 1.2816
"""Standard deviations to each side that hold 80 % of a normal distribution."""


@dataclass(frozen=True)
class Spent:
    """What a study has used so far: launches, the minutes its trials took, and their price.

    Making a checkpoint is part of its trial: its time counts, and so does a making that failed,
    as the launch that it would have been. None can go on for ever without using the budget.
    """

    launches: int
    minutes: float
    money: float | None

    @classmethod
    def of(
        cls, outcomes: Sequence[TrialOutcome], price_per_hour: float | None, devices: int
    ) -> Spent:
        """Add up a journal; a resumed study goes on with what is left."""
        account = Account(price_per_hour, devices)
        account.update(outcomes)
        return account.spent


@dataclass(frozen=True)
class Eta:
    """Time until the budget is used.

    Attributes:
        s: expected, in seconds.
        low_s, high_s: between which it lies in 8 of 10 cases, were the launches to come like those
            that were; None where nothing says how they vary.
    """

    s: float
    low_s: float | None = None
    high_s: float | None = None

    def at_pace(self, pace: float) -> Eta:
        """The same on a clock that runs `pace` times as fast."""
        low_s, high_s = (None if s is None else s * pace for s in (self.low_s, self.high_s))
        return Eta(self.s * pace, low_s, high_s)


@dataclass
class _Spread:
    """Running mean and standard deviation (Welford, Technometrics 4, 1962)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def see(self, value: float) -> None:
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self.squares += before * (value - self.mean)

    @property
    def sd(self) -> float | None:
        return math.sqrt(self.squares / (self.count - 1)) if self.count > 1 else None


@dataclass
class Account:
    """Adds up a journal, one outcome at a time.

    Attributes:
        price_per_hour: of one device; None leaves money out.
        devices: those that a launch is charged for whose manifest does not say what it used.
    """

    price_per_hour: float | None
    devices: int
    _taken: int = 0
    _launches: int = 0
    _seconds: float = 0.0
    _real_seconds: float = 0.0
    _device_seconds: float = 0.0
    _durations: _Spread = field(default_factory=_Spread)

    def update(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Take in what has come to a journal since the last time; it only grows."""
        for outcome in outcomes[self._taken :]:
            seconds = outcome.timings_s.get("total", 0.0)
            self._seconds += seconds
            # Where time is an engine's own, the study itself gets on at another pace.
            self._real_seconds += outcome.timings_s.get("real", seconds)
            self._device_seconds += seconds * devices_used(outcome, self.devices)
            if outcome.launched:
                self._launches += 1
                self._durations.see(seconds)
        self._taken = len(outcomes)

    @property
    def spent(self) -> Spent:
        money = None
        if self.price_per_hour is not None:
            money = self._device_seconds / HOUR_S * self.price_per_hour
        return Spent(self._launches, self._seconds / 60, money)

    @property
    def is_virtual(self) -> bool:
        """True if some of the time is an engine's own."""
        return self._real_seconds != self._seconds

    @property
    def launch_s(self) -> float | None:
        """Mean seconds of a launch, None before the first."""
        return self._durations.mean if self._launches and self._durations.mean > 0 else None

    def eta(self, budget: BudgetConfig) -> Eta | None:
        """When the budget is used, whichever limit is reached first; None before a launch."""
        mean_s, spent = self.launch_s, self.spent
        if mean_s is None:
            return None
        limits: list[Eta] = []
        if budget.launches is not None:
            limits.append(self._of_launches(max(0, budget.launches - spent.launches), mean_s))
        if budget.minutes is not None:
            limits.append(_exactly((budget.minutes - spent.minutes) * 60))
        if budget.money is not None and spent.money:
            limits.append(_exactly((budget.money / spent.money - 1.0) * self._seconds))
        found = _first(limits)
        return None if found is None else found.at_pace(self._real_seconds / self._seconds)

    def _of_launches(self, count: int, mean_s: float) -> Eta:
        """Their mean is uncertain by the launches to come and by those that it was taken from."""
        seen, sd_s = self._durations.count, self._durations.sd
        if sd_s is None:
            return Eta(count * mean_s)
        off_s = _WITHIN_80_PERCENT * sd_s * math.sqrt(count + count**2 / seen)
        return Eta(count * mean_s, max(0.0, count * mean_s - off_s), count * mean_s + off_s)


def devices_used(outcome: TrialOutcome, otherwise: int) -> int:
    """Devices that a launch occupied, as its manifest says."""
    told = outcome.manifest.get("devices")
    return told if isinstance(told, int) and told > 0 else otherwise


def exhausted(
    spent: Spent, budget: BudgetConfig, quiet_launches: int = 0, noise_share: float = 0.0
) -> str | None:
    """Why no further launch may start, or None.

    Args:
        spent: so far.
        budget: limits; the first that is reached counts.
        quiet_launches: launches since the last that gained anything beyond noise.
        noise_share: what counts as noise, for the message.
    """
    if budget.launches is not None and spent.launches >= budget.launches:
        return f"budget of {budget.launches} launches used"
    if budget.minutes is not None and spent.minutes >= budget.minutes:
        return f"budget of {budget.minutes:g} minutes used"
    if budget.money is not None and spent.money is not None and spent.money >= budget.money:
        return f"budget of {budget.money:g} used"
    patience = budget.patience_launches
    if patience is not None and quiet_launches >= patience:
        return (
            f"the last {quiet_launches} launches gained nothing beyond noise ({noise_share:.1%}); "
            f"budget.patience_launches is {patience}"
        )
    return None


def _exactly(seconds: float) -> Eta:
    left_s = max(0.0, seconds)
    return Eta(left_s, left_s, left_s)


def _first(limits: Sequence[Eta]) -> Eta | None:
    if not limits:
        return None
    known = [eta for eta in limits if eta.low_s is not None and eta.high_s is not None]
    if len(known) < len(limits):
        return Eta(min(eta.s for eta in limits))
    return Eta(
        min(eta.s for eta in limits),
        min(eta.low_s for eta in known if eta.low_s is not None),
        min(eta.high_s for eta in known if eta.high_s is not None),
    )
