"""Which deployment of a table an engine would most likely start with by itself. Pure.

A table that does not say where its source began needs a deployment to compare with. The one nearest
to common defaults is taken: no quantization, one device, vLLM's share of memory and its batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sweeper.engine.replay.rows import Row

USUAL = {
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "data_parallel_size": 1,
    "gpu_memory_utilization": 0.92,
    "max_num_seqs": 256,
    "max_num_batched_tokens": 8192,
}
"""Defaults of vLLM 0.33 on a device with 70 GiB or more; sequences as most of its devices have."""


def most_usual(rows: Sequence[Row]) -> Row:
    """The row with the most load levels, among those the nearest to the usual, the first of them.

    Few parameters that are given at all come first: what is left out is at its engine's default.
    """
    return min(rows, key=_unusual)


def _unusual(row: Row) -> tuple[int, int, float]:
    given = sum(name not in USUAL for name in row.deployment)
    distance = math.fsum(
        abs(math.log(float(row.deployment[name]) / usual))
        for name, usual in USUAL.items()
        if name in row.deployment
    )
    return -len(row.levels), given, distance
