"""Replaying a trace: recorded arrivals and lengths, with prompts made to measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from sweeper.config.schema import WorkloadConfig
from sweeper.load.prompts import Bank, PromptSource, PromptWriter, Unit
from sweeper.load.workload.item import WorkItem
from sweeper.load.workload.synthetic import source_conditions
from sweeper.load.workload.trace_files import HASH_BLOCK_TOKENS, Arrival, read_trace

_BLOCKS_KEPT = 4096


class TraceReplay:
    """The requests of a trace, each at its time (`WorkItem.at_s`) and of its length.

    Unlike other workloads a trace ends: `items` stops after its last request.

    Where the trace tells the hashes of its prompts' blocks, the same hash is the same 512 tokens
    within a stream, so that a server's prefix cache finds what it would have found when the trace
    was recorded, and `shares_prefix` is True. Streams of different names have nothing in common:
    a second level does not find the cache filled by the first.

    Attributes:
        requests: how many there are.
    """

    def __init__(self, cfg: WorkloadConfig, bank: Bank, seed: int) -> None:
        trace = read_trace(cfg)
        self._source = PromptSource(bank, seed)
        self._arrivals = trace.arrivals
        self.requests = len(trace.arrivals)
        self.exact = self._source.exact
        self.shares_prefix = trace.has_hashes
        self.conditions: dict[str, object] = {
            "kind": "trace",
            **trace.conditions,
            **source_conditions(self._source, seed),
        }

    def items(self, stream: str) -> Iterator[WorkItem]:
        """The requests in order of their times, from first to last, once."""
        writer = self._source.writer(stream)

        @lru_cache(maxsize=_BLOCKS_KEPT)
        def block(hash_id: int) -> list[Unit]:
            return self._source.passage("block", stream, hash_id, tokens=HASH_BLOCK_TOKENS)

        for one in self._arrivals:
            units = _units(one, writer, block)
            yield WorkItem(
                prompt=self._source.prompt(units),
                output_tokens=one.output_tokens,
                input_tokens=one.input_tokens if self.exact else None,
                at_s=one.at_s,
            )


def _units(one: Arrival, writer: PromptWriter, block: Callable[[int], list[Unit]]) -> list[Unit]:
    if not one.hash_ids:
        return writer.units(one.input_tokens)
    units = [unit for hash_id in one.hash_ids for unit in block(hash_id)]
    return units[: one.input_tokens]


def longest(cfg: WorkloadConfig) -> tuple[int, int]:
    """(input, output) tokens of the longest requests of the trace."""
    arrivals = read_trace(cfg).arrivals
    return max(one.input_tokens for one in arrivals), max(one.output_tokens for one in arrivals)


def count_requests(cfg: WorkloadConfig) -> int:
    """Requests of the trace, before a server is there to make prompts for."""
    return len(read_trace(cfg).arrivals)
