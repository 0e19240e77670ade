"""The typed shape of what is promised, and of what is preferred among the points that keep it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SloConfig:
    """Limits that an operating point must keep; None means none.

    A field that begins with ``min_`` is the least that is accepted of the metric named after it;
    every other is the most, in milliseconds.
    """

    ttft_mean_ms: float | None = None
    ttft_p50_ms: float | None = None
    ttft_p90_ms: float | None = None
    ttft_p95_ms: float | None = None
    ttft_p99_ms: float | None = None
    tpot_mean_ms: float | None = None
    tpot_p50_ms: float | None = None
    tpot_p90_ms: float | None = None
    tpot_p95_ms: float | None = None
    tpot_p99_ms: float | None = None
    e2e_mean_ms: float | None = None
    e2e_p50_ms: float | None = None
    e2e_p90_ms: float | None = None
    e2e_p95_ms: float | None = None
    e2e_p99_ms: float | None = None
    min_output_tokens_per_s: float | None = None
    """Of the whole server."""
    min_output_tokens_per_s_per_gpu: float | None = None
    """A limit on cost in other words: price per device and second by price per token."""
    min_output_tokens_per_s_per_user: float | None = None
    """What one stream sees, waiting included."""
    min_requests_per_s: float | None = None
    min_goodput_share: float | None = None
    """Of all requests those within every limit of `load.goodput`, between 0 and 1."""
    min_quality: float | None = None
    """Agreement with the reference, or the score of the tasks, between 0 and 1."""


@dataclass
class SelectConfig:
    """Which operating point is recommended; nothing is measured again for it."""

    name: str = "default"
    slo: SloConfig = field(default_factory=SloConfig)
    prefer: str = "auto"
    """auto | throughput | latency | quality | cost | balanced, among the points that keep the SLO.
    auto: throughput with an SLO, balanced without one. See `sweeper.pareto.rule`."""
