"""95 % intervals of a level's metrics. Pure.

With one run requests are what is resampled; with repeats, the repeats too, see
`sweeper.metrics.bootstrap`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from sweeper.load.level import BATCH
from sweeper.metrics.bootstrap import percentile_interval, ratio_interval
from sweeper.metrics.figures import THROUGHPUTS, latencies_of
from sweeper.metrics.latencies import NAMES
from sweeper.metrics.percentiles import Samples
from sweeper.metrics.window import Repeat, output_tokens_inside

_PERCENTS = (50, 95)


def intervals(
    repeats: Sequence[Repeat], metrics: Mapping[str, float], seed: int
) -> dict[str, list[float]]:
    """Intervals of P50 and P95 of each latency and of output throughput, where there are any.

    Throughput needs two requests, or two batches: how long a batch takes is one observation.
    """
    found = [latencies_of(repeat) for repeat in repeats]
    told: dict[str, list[float]] = {}
    for name in NAMES:
        groups = [each[name] for each in found if len(each[name])]
        if sum(map(len, groups)) < 2:
            continue
        for percent in _PERCENTS:
            bounds = percentile_interval(groups, percent, seed=seed)
            told[f"{name}_p{percent}_ms"] = [1e3 * bound for bound in bounds]
    pairs = _work_and_time(repeats)
    if sum(len(work) for work, _ in pairs) < 2:
        return told
    ratio = _ratio(pairs)
    if ratio > 0:
        spread = ratio_interval(pairs, seed=seed)
        for name in THROUGHPUTS[:3]:
            if name in metrics:
                told[name] = [metrics[name] * bound / ratio for bound in spread]
    return told


def _work_and_time(repeats: Sequence[Repeat]) -> list[tuple[Samples, Samples]]:
    """Pairs by repeat whose ratio of sums has the relative spread of the throughput.

    Closed loop: throughput is concurrency times tokens by latency (Little's law), so output
    tokens and E2E of each request. By the clock: what each request put into the window, and its
    share of the window. Batch: the tokens of each batch and the time it took.
    """
    pairs = []
    for repeat in repeats:
        tokens = np.array([record.output_tokens or 0 for record in repeat.ok], dtype=float)
        if repeat.run.level.kind == BATCH:
            pairs.append(_batches(repeat))
        elif repeat.run.level.scheduled:
            inside = output_tokens_inside(repeat.ok, repeat.window)
            pairs.append((inside, np.full(len(inside), repeat.window.length_s / len(inside))))
        else:
            pairs.append((tokens, latencies_of(repeat)["e2e"]))
    return pairs


def _batches(repeat: Repeat) -> tuple[Samples, Samples]:
    """Output tokens and seconds by batch: requests that were given to the engine together."""
    tokens: dict[float, int] = defaultdict(int)
    end_s: dict[float, float] = defaultdict(float)
    for record in repeat.ok:
        tokens[record.sent_s] += record.output_tokens or 0
        end_s[record.sent_s] = max(end_s[record.sent_s], record.finished_s)
    work = np.array([float(tokens[given]) for given in tokens])
    return work, np.array([end_s[given] - given for given in tokens])


def _ratio(pairs: Sequence[tuple[Samples, Samples]]) -> float:
    work = np.sort(np.concatenate([above for above, _ in pairs])).sum()
    return float(work / np.sort(np.concatenate([below for _, below in pairs])).sum())
