"""Checks of what is promised and preferred."""

from __future__ import annotations

from dataclasses import asdict

from sweeper.config.load_checks import has_limits
from sweeper.config.schema import SloConfig, SweeperConfig
from sweeper.errors import ConfigError

PREFERENCES = ("auto", "throughput", "latency", "quality", "cost", "balanced")
_SHARES = {
    "min_goodput_share": "give the share of requests that must keep load.goodput, between 0 and 1",
    "min_quality": "give the least agreement with the reference, between 0 and 1",
}


def has_latency_limit(slo: SloConfig) -> bool:
    """Whether any latency is promised, of whatever percentile."""
    return any(limit is not None for name, limit in asdict(slo).items() if name.endswith("_ms"))


def check_select(cfg: SweeperConfig) -> None:
    """Raises ConfigError for a limit that nothing can keep, or that is never measured."""
    slo = cfg.select.slo
    for name, limit in asdict(slo).items():
        if limit is None:
            continue
        if name in _SHARES and not 0 <= limit <= 1:
            raise ConfigError(f"select.slo.{name}={limit} is not a share", _SHARES[name])
        if name not in _SHARES and limit <= 0:
            raise ConfigError(
                f"select.slo.{name}={limit} must be above 0",
                f"set select.slo.{name}=1 or more, or null for no limit",
            )
    if slo.min_goodput_share is not None and not has_limits(cfg.load.goodput):
        raise ConfigError(
            f"select.slo.min_goodput_share={slo.min_goodput_share}: the study has no limit by "
            "which a request counts as good, so that no goodput was measured",
            "promise percentiles instead (select.slo.ttft_p95_ms=500), or start a study with "
            "load.goodput.ttft_ms=500 load.goodput.tpot_ms=50",
        )
