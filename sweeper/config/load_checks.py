"""Checks of the `load` group, and of the load level that an objective names. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from sweeper.config.engine_checks import is_tabled
from sweeper.config.schema import GoodputConfig, LoadConfig, SweeperConfig
from sweeper.errors import ConfigError

KINDS = ("closed", "open", "ramp", "replay", "batch")
LEVELS = ("given", "found", "slo")
ARRIVALS = ("constant", "poisson", "gamma")
LADDERS = {
    "closed": "concurrency",
    "batch": "concurrency",
    "open": "rate_per_s",
    "ramp": "rate_per_s",
    "replay": "time_scale",
}
"""Kind → the list that holds its levels."""

MAX_STREAMS = 60_000
MAX_REQUESTS = 10_000_000
"""Of one level: what the client still holds in memory."""
EXAMPLES = {"concurrency": "[1,4,8]", "rate_per_s": "[0.5,1,2,4]", "time_scale": "[0.5,1,2]"}
POSITIVE = (
    "requests_per_stream",
    "min_requests",
    "duration_s",
    "repeats",
    "max_levels",
    "warmup_max_rounds",
    "request_timeout_s",
    "level_timeout_s",
)
NOT_NEGATIVE = ("warmup_requests_per_stream", "gauges_every_s")
SHARES = ("min_growth_share", "rate_tolerance_share", "warmup_tolerance_share")
LIMITS = ("ttft_ms", "tpot_ms", "e2e_ms")
MIN_SEARCHED_LEVELS = 3
"""A search needs a level below, one above, and one between or again."""


def check_load(cfg: SweeperConfig) -> None:
    """Run every check of the load. Raises ConfigError for the first fault."""
    if is_tabled(cfg) and not getattr(cfg.load, LADDERS[cfg.load.kind]):
        return  # the table's own levels are filled in
    for one in _CHECKS:
        one(cfg.load)
    _objective_level(cfg)


def has_limits(goodput: GoodputConfig) -> bool:
    """Whether any limit is set by which a request counts as good."""
    return any(getattr(goodput, name) is not None for name in LIMITS)


def _ranges(load: LoadConfig) -> None:
    for field in POSITIVE:
        value = getattr(load, field)
        if value <= 0:
            raise ConfigError(
                f"load.{field}={value} must be above 0", f"set load.{field}=1 or more"
            )
    for field in NOT_NEGATIVE:
        value = getattr(load, field)
        if value < 0:
            raise ConfigError(f"load.{field}={value} is negative", f"set load.{field}=0 or more")
    for field in SHARES:
        value = getattr(load, field)
        if not 0 < value < 1:
            raise ConfigError(
                f"load.{field}={value} is not a share between 0 and 1",
                f"set for example load.{field}=0.05, which is 5 %",
            )


def _ladder(load: LoadConfig) -> None:
    field = LADDERS[load.kind]
    ladder: Sequence[float] = getattr(load, field)
    remedy = f"give levels from low to high, for example load.{field}={EXAMPLES[field]}"
    shown = f"load.{field}={list(ladder)}"
    if not ladder:
        if load.levels != "given":
            remedy = f"give the level to begin with, for example load.{field}=[1]"
        raise ConfigError(f"load.{field} is empty: no load level to measure", remedy)
    if field == "concurrency" and any(level < 1 for level in ladder):
        raise ConfigError(f"{shown} has a level below 1", remedy)
    if any(level <= 0 for level in ladder):
        raise ConfigError(f"{shown} has a level that is not above 0", remedy)
    if any(b <= a for a, b in pairwise(ladder)):
        raise ConfigError(f"{shown} is not strictly increasing", remedy)
    _size(load, field, ladder[-1])


def _size(load: LoadConfig, field: str, highest: float) -> None:
    """Refuse a level that no machine could drive; a slip of the finger costs hours otherwise."""
    if field == "concurrency":
        requests = max(highest * load.requests_per_stream, load.min_requests)
        if highest > MAX_STREAMS:
            raise ConfigError(
                f"load.concurrency={highest}: that many requests at once have no ports on one "
                f"machine (up to {MAX_STREAMS})",
                f"give levels from low to high, for example load.concurrency={EXAMPLES[field]}",
            )
    elif field == "rate_per_s":
        requests = max(highest * load.duration_s, load.min_requests)
    else:
        return
    if requests > MAX_REQUESTS:
        raise ConfigError(
            f"load.{field}={highest:g}: that level would send {requests:,.0f} requests",
            f"lower it, or load.requests_per_stream, load.min_requests or load.duration_s, to "
            f"{MAX_REQUESTS:,} at most",
        )


def _arrivals(load: LoadConfig) -> None:
    if load.burstiness <= 0:
        raise ConfigError(
            f"load.burstiness={load.burstiness} must be above 0",
            "set load.burstiness=0.25 for bursts, 1 for Poisson arrivals, 4 for even ones",
        )
    if load.burstiness != 1.0 and load.arrivals != "gamma":
        raise ConfigError(
            f"load.burstiness={load.burstiness} has no effect on load.arrivals={load.arrivals}",
            "set load.arrivals=gamma, or leave load.burstiness=1",
        )
    if load.kind not in {"open", "ramp"} and load.arrivals != "poisson":
        raise ConfigError(
            f"load.arrivals={load.arrivals} has no effect on load.kind={load.kind}",
            "set load.kind=open, or leave load.arrivals=poisson",
        )


def _ramp(load: LoadConfig) -> None:
    if load.kind != "ramp":
        return
    if load.start_rate_per_s <= 0:
        raise ConfigError(
            f"load.start_rate_per_s={load.start_rate_per_s} must be above 0",
            "set the rate at the beginning of the ramp, for example load.start_rate_per_s=0.1",
        )
    if load.start_rate_per_s >= min(load.rate_per_s):
        raise ConfigError(
            f"load.start_rate_per_s={load.start_rate_per_s:g} is not below the end of the ramp, "
            f"load.rate_per_s={list(load.rate_per_s)}",
            "begin lower, or end higher: a ramp only rises",
        )


def _searched(load: LoadConfig) -> None:
    if load.levels == "given":
        return
    if load.levels == "found" and load.kind not in {"closed", "open"}:
        raise ConfigError(
            f"load.levels=found cannot search with load.kind={load.kind}",
            "set load.kind=closed or load.kind=open, or list the levels: load.levels=given",
        )
    if load.levels == "slo" and load.kind != "open":
        raise ConfigError(
            f"load.levels=slo looks for a request rate, which load.kind={load.kind} has not",
            "take load=slo, or set load.kind=open with the rate to begin with: load.rate_per_s=[1]",
        )
    if load.levels == "slo" and not has_limits(load.goodput):
        raise ConfigError(
            "load.levels=slo has no limit that a request must keep",
            "set for example load.goodput.ttft_ms=500 load.goodput.tpot_ms=50",
        )
    if load.max_levels < MIN_SEARCHED_LEVELS:
        raise ConfigError(
            f"load.max_levels={load.max_levels} leaves a search no room",
            f"set load.max_levels={MIN_SEARCHED_LEVELS} or more; 12 is the default",
        )


def _goodput(load: LoadConfig) -> None:
    for name in LIMITS:
        limit = getattr(load.goodput, name)
        if limit is not None and limit <= 0:
            raise ConfigError(
                f"load.goodput.{name}={limit} must be above 0",
                f"set milliseconds, or null for no limit: load.goodput.{name}=null",
            )
    if not 0 < load.goodput.share <= 1:
        raise ConfigError(
            f"load.goodput.share={load.goodput.share} is not a share",
            "set the share of requests that must keep the limits: load.goodput.share=0.99",
        )


def _patience(load: LoadConfig) -> None:
    if load.kind in {"open", "ramp"} and load.duration_s >= load.level_timeout_s:
        raise ConfigError(
            f"load.duration_s={load.duration_s:g} is not below load.level_timeout_s="
            f"{load.level_timeout_s:g}: every level would be broken off",
            f"set load.level_timeout_s={2 * load.duration_s:g}, or a shorter load.duration_s",
        )


def _objective_level(cfg: SweeperConfig) -> None:
    """The level that `objective.concurrency` names must be one that is driven in every trial."""
    asked, load = cfg.objective.concurrency, cfg.load
    if asked is None:
        return
    if LADDERS[load.kind] != "concurrency":
        raise ConfigError(
            f"objective.concurrency={asked} names no level of load.kind={load.kind}",
            "leave objective.concurrency=null, which takes the highest level",
        )
    if load.levels != "given":
        raise ConfigError(
            f"objective.concurrency={asked} may not be among the levels that load.levels="
            f"{load.levels} finds",
            "leave objective.concurrency=null, which takes each trial's highest valid level, or "
            "list the levels: load.levels=given",
        )
    if asked not in load.concurrency:
        raise ConfigError(
            f"objective.concurrency={asked} is not a level of load.concurrency="
            f"{list(load.concurrency)}",
            f"choose one of {list(load.concurrency)}, or add {asked} to load.concurrency",
        )


_CHECKS: tuple[Callable[[LoadConfig], None], ...] = (
    _ranges,
    _ladder,
    _arrivals,
    _ramp,
    _searched,
    _goodput,
    _patience,
)
