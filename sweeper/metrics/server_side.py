"""What the server says of a level: counters at its two ends, gauges in between. Pure.

Counters of several repeats are added up, and told only if every repeat has them; what a server
does not tell is absent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sweeper.load import server_metrics
from sweeper.load.records import LevelRun
from sweeper.metrics.window import Repeat


def delta(run: LevelRun, name: str) -> float | None:
    """How much a counter grew, None if it is not told or was reset meanwhile."""
    if name not in run.server_before or name not in run.server_after:
        return None
    grown = run.server_after[name] - run.server_before[name]
    return grown if grown >= 0 else None


def grown(runs: Sequence[LevelRun], name: str) -> float | None:
    """The same over all runs, None if one of them does not tell."""
    deltas = [delta(run, name) for run in runs]
    known = [value for value in deltas if value is not None]
    return math.fsum(known) if known and len(known) == len(deltas) else None


def prefix_hit_share(runs: Sequence[LevelRun]) -> float | None:
    """Prompt tokens found in the prefix cache as a share of those looked up."""
    return _share(
        grown(runs, server_metrics.PREFIX_HITS), grown(runs, server_metrics.PREFIX_QUERIES)
    )


def counters(runs: Sequence[LevelRun]) -> dict[str, float | None]:
    """Metrics from counters."""
    drafts = grown(runs, server_metrics.SPEC_DRAFTS)
    drafted = grown(runs, server_metrics.SPEC_DRAFT_TOKENS)
    accepted = grown(runs, server_metrics.SPEC_ACCEPTED)
    return {
        "preemptions": grown(runs, server_metrics.PREEMPTIONS),
        "prefix_cache_hit_share": prefix_hit_share(runs),
        "server_output_tokens": grown(runs, server_metrics.GENERATION_TOKENS),
        "spec_acceptance_share": _share(accepted, drafted),
        "spec_tokens_per_draft": _share(accepted, drafts),
    }


def gauges(repeats: Sequence[Repeat]) -> dict[str, float | None]:
    """Metrics from gauges, over the looks that fell into the windows."""
    kv = _inside(repeats, server_metrics.KV_USAGE)
    waiting = _inside(repeats, server_metrics.WAITING)
    return {
        "kv_cache_usage_max_share": max(kv, default=None),
        "kv_cache_usage_mean_share": _mean(kv),
        "queue_max_requests": max(waiting, default=None),
        "queue_mean_requests": _mean(waiting),
        "running_mean_requests": _mean(_inside(repeats, server_metrics.RUNNING)),
    }


def _inside(repeats: Sequence[Repeat], name: str) -> list[float]:
    return [
        look.values[name]
        for repeat in repeats
        for look in repeat.run.gauges
        if repeat.window.start_s <= look.at_s <= repeat.window.end_s
        and math.isfinite(look.values.get(name, math.nan))
    ]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
