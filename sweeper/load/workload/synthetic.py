"""Synthetic requests: prompts that never repeat, of lengths that are fixed or drawn."""

from __future__ import annotations

from collections.abc import Iterator

from sweeper.config.schema import WorkloadConfig
from sweeper.load.prompts import Bank, PromptSource, sentences_sha256
from sweeper.load.workload.item import WorkItem
from sweeper.load.workload.lengths import LengthSource


class Synthetic:
    """Language of an exact length, see `sweeper.load.prompts`.

    Where the server does not tokenize, prompts are text of as many words, `exact` is False and
    only the server's `usage` knows their length.
    """

    shares_prefix = False

    def __init__(self, cfg: WorkloadConfig, bank: Bank, seed: int) -> None:
        self._source = PromptSource(bank, seed)
        self._lengths = LengthSource(cfg, seed)
        self.exact = self._source.exact
        self.conditions = {
            "kind": "synthetic",
            **self._lengths.conditions,
            **source_conditions(self._source, seed),
        }

    def items(self, stream: str) -> Iterator[WorkItem]:
        """Endless requests, made one by one."""
        writer = self._source.writer(stream)
        for input_tokens, output_tokens in self._lengths.pairs(stream):
            prompt = self._source.prompt(writer.units(input_tokens))
            yield WorkItem(prompt, output_tokens, input_tokens if self.exact else None)


def source_conditions(source: PromptSource, seed: int) -> dict[str, object]:
    """What a manifest needs to know of prompts that are made from the bank."""
    return {
        "seed": seed,
        "prompts": "token ids" if source.exact else "text",
        "sentences_sha256": sentences_sha256(),
    }
