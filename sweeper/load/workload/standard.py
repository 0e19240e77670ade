"""The standard suite: 20 prompts of the kinds that production sees.

Short and long, code, Chinese, English, and output of a given structure (JSON, tables, YAML). They
were written for this project and lie, with the version of the suite, in
`sweeper/load/data/standard_suite.jsonl`. Figures of one version and one output length compare.

A suite that is sent again word by word is answered from the prefix cache from the second pass
on, and a server looks faster with every load level. So each request opens with a line of its own,
``[request 5f0c...]``, which keeps its first block, and with it all blocks, out of what the cache
knows. The line is part of the prompt and counted as such.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from sweeper.config.schema import WorkloadConfig
from sweeper.load.prompts import Bank, read_data
from sweeper.load.workload.estimate import fewest_tokens
from sweeper.load.workload.item import WorkItem

SUITE_FILE = "standard_suite.jsonl"


@dataclass(frozen=True)
class SuitePrompt:
    """One prompt of the suite; `tags` say what kind of request it stands for."""

    id: str
    tags: tuple[str, ...]
    prompt: str


@dataclass(frozen=True)
class Suite:
    """The prompts in their order, the version of the suite and the hash of its file."""

    version: int
    prompts: tuple[SuitePrompt, ...]
    sha256: str


@cache
def suite() -> Suite:
    """The suite of this release."""
    data = read_data(SUITE_FILE)
    head, *lines = [json.loads(line) for line in data.decode().splitlines()]
    prompts = tuple(SuitePrompt(one["id"], tuple(one["tags"]), one["prompt"]) for one in lines)
    return Suite(head["version"], prompts, sha256(data).hexdigest())


class Standard:
    """The suite in its order, again and again, each request with a line of its own before it.

    The order is fixed, so that levels and trials of as many requests have the same mix; short and
    long prompts take turns in it.
    """

    exact = False
    shares_prefix = False

    def __init__(self, cfg: WorkloadConfig, bank: Bank, seed: int) -> None:
        self._suite = suite()
        self._output_tokens = cfg.output_tokens
        self._seed = seed
        self.conditions: dict[str, object] = {
            "kind": "standard",
            "suite_version": self._suite.version,
            "suite_sha256": self._suite.sha256,
            "suite_prompts": len(self._suite.prompts),
            "output_tokens": cfg.output_tokens,
            "prompts": "text",
            "seed": seed,
        }

    def items(self, stream: str) -> Iterator[WorkItem]:
        """Endless requests."""
        rng = random.Random(f"{self._seed}:standard:{stream}")
        while True:
            for one in self._suite.prompts:
                yield WorkItem(f"{opening(rng)}\n{one.prompt}", self._output_tokens)


def opening(rng: random.Random) -> str:
    """A line that no other request begins with."""
    return f"[request {rng.getrandbits(64):016x}]"


def longest(cfg: WorkloadConfig) -> tuple[int, int]:
    """(input, output) tokens of the longest request; the input is guessed low."""
    return max(fewest_tokens(one.prompt) for one in suite().prompts), cfg.output_tokens
