"""Prompts that begin alike, as behind one system prompt or over one document."""

from __future__ import annotations

import random
from collections.abc import Iterator

from sweeper.config.schema import WorkloadConfig
from sweeper.load.prompts import Bank, PromptSource
from sweeper.load.workload.item import WorkItem
from sweeper.load.workload.lengths import LengthSource
from sweeper.load.workload.synthetic import source_conditions


class SharedPrefix:
    """`prefix_groups` beginnings of `prefix_tokens` each, and an end that never repeats.

    The beginnings are the same for all streams: like a system prompt they outlive a load level,
    and after the warm-up the server has them in its cache. Each request takes one at random.
    """

    shares_prefix = True

    def __init__(self, cfg: WorkloadConfig, bank: Bank, seed: int) -> None:
        self._source = PromptSource(bank, seed)
        self._lengths = LengthSource(cfg, seed, shortest_input=cfg.prefix_tokens + 1)
        self._prefixes = [
            self._source.passage("prefix", group, tokens=cfg.prefix_tokens)
            for group in range(cfg.prefix_groups)
        ]
        self._prefix_tokens = cfg.prefix_tokens
        self._seed = seed
        self.exact = self._source.exact
        self.conditions = {
            "kind": "shared_prefix",
            **self._lengths.conditions,
            "prefix_tokens": cfg.prefix_tokens,
            "prefix_groups": cfg.prefix_groups,
            **source_conditions(self._source, seed),
        }

    def items(self, stream: str) -> Iterator[WorkItem]:
        """Endless requests, made one by one."""
        writer = self._source.writer(stream)
        rng = random.Random(f"{self._seed}:groups:{stream}")
        for input_tokens, output_tokens in self._lengths.pairs(stream):
            own = writer.units(input_tokens - self._prefix_tokens)
            prompt = self._source.prompt([*rng.choice(self._prefixes), *own])
            yield WorkItem(prompt, output_tokens, input_tokens if self.exact else None)
