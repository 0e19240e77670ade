"""Latencies of requests. Pure.

There is no inter-token latency here, on purpose: the client sees chunks, and a chunk is not a
token. Speculative decoding and stream intervals put several tokens into one, so the time between
two chunks grows while the server gets faster. TPOT is the time a token took by the server's count.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sweeper.load.records import RequestRecord
from sweeper.metrics.percentiles import Samples

NAMES = ("ttft", "tpot", "e2e")


def ttft_s(record: RequestRecord) -> float | None:
    """From the moment it was due to its first content; None if the engine told no first token."""
    return None if record.first_token_s is None else record.first_token_s - record.scheduled_s


def tpot_s(record: RequestRecord) -> float | None:
    """(E2E - TTFT) / (output tokens - 1); None unless two tokens came in two chunks.

    A whole output in one chunk has no measurable time a token, and must not be read as zero.
    """
    if record.first_token_s is None or record.chunks < 2 or (record.output_tokens or 0) < 2:
        return None
    return (record.finished_s - record.first_token_s) / ((record.output_tokens or 0) - 1)


def e2e_s(record: RequestRecord) -> float:
    """From the moment it was due to its end."""
    return record.finished_s - record.scheduled_s


def latencies(records: Iterable[RequestRecord], *, streamed: bool = True) -> dict[str, Samples]:
    """Seconds by name, each of shape (n,), n being the requests that have such a latency.

    Args:
        records: successful requests; outliers are kept.
        streamed: False where tokens come all at once (beam search): there is only E2E then.
    """
    ok = list(records)
    first = [ttft_s(record) for record in ok] if streamed else []
    token = [tpot_s(record) for record in ok] if streamed else []
    return {
        "ttft": _array(first),
        "tpot": _array(token),
        "e2e": _array([e2e_s(record) for record in ok]),
    }


def _array(values: Iterable[float | None]) -> Samples:
    return np.array([value for value in values if value is not None], dtype=float)
