"""Goodput: what was served within the limits. Pure.

A request is good if it succeeded and kept every limit. The share is of *all* requests: one that
failed, timed out or cannot be believed is a bad one. A request without TPOT (one token, or an
output in one piece) is judged by the other limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.load.records import RequestRecord
from sweeper.metrics.latencies import e2e_s, tpot_s, ttft_s
from sweeper.metrics.window import Repeat, pooled_rates

_NORMAL_975 = 1.959964


@dataclass(frozen=True)
class GoodputLimits:
    """Limits of one request in milliseconds; None means none."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None

    @property
    def any(self) -> bool:
        """True if there is a limit at all."""
        return (self.ttft_ms, self.tpot_ms, self.e2e_ms) != (None, None, None)

    def kept_by(self, record: RequestRecord) -> bool:
        """True if a successful request kept every limit that can be judged of it."""
        seen = (
            (self.ttft_ms, ttft_s(record)),
            (self.tpot_ms, tpot_s(record)),
            (self.e2e_ms, e2e_s(record)),
        )
        return all(
            1e3 * seconds <= limit
            for limit, seconds in seen
            if limit is not None and seconds is not None
        )


def goodput(
    repeats: Sequence[Repeat], requests: int, limits: GoodputLimits
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Metrics and intervals of a level.

    Args:
        repeats: its runs, each with the requests that can be believed.
        requests: all that were sent in them, failed ones included.
        limits: what a good request keeps.

    Returns:
        ``goodput_share``, ``goodput_requests_per_s``, ``goodput_tokens_per_s`` (output tokens of
        good requests; both inside the windows), and the Wilson interval of the share, which takes
        requests for independent. Nothing at all without limits, or if a limit is on TTFT or TPOT
        and the level was not streamed.
    """
    if not limits.any or not requests or not repeats or not _can_be_judged(repeats, limits):
        return {}, {}
    good = [
        (tuple(record for record in repeat.ok if limits.kept_by(record)), repeat.window)
        for repeat in repeats
    ]
    kept = sum(len(records) for records, _ in good)
    rate = pooled_rates(good)
    metrics = {
        "goodput_share": kept / requests,
        "goodput_requests_per_s": rate.requests,
        "goodput_tokens_per_s": rate.output_tokens,
    }
    return metrics, {"goodput_share": wilson_interval(kept, requests)}


def wilson_interval(successes: int, n: int, z: float = _NORMAL_975) -> list[float]:
    """95 % interval of a share (E. B. Wilson, JASA 1927); sound for shares of 0 and 1 too.

    Raises:
        ValueError: there are no samples.
    """
    if n < 1:
        raise ValueError("a share needs at least one sample")
    share = successes / n
    scale = 1.0 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return [max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))]


def _can_be_judged(repeats: Sequence[Repeat], limits: GoodputLimits) -> bool:
    if limits.ttft_ms is None and limits.tpot_ms is None:
        return True
    streamed = all(repeat.run.beam_width == 1 for repeat in repeats)
    return streamed and all(
        record.first_token_s is not None for repeat in repeats for record in repeat.ok
    )
