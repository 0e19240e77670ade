"""A small workload for tests of the client, and a way to drive it with few words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from sweeper.load.decoding import Decoding
from sweeper.load.drive import DriveOptions, Listeners, run_level
from sweeper.load.level import LoadLevel
from sweeper.load.records import LevelRun
from sweeper.load.workload.item import WorkItem
from tests.load.stub import Stub

NO_WARM_UP = DriveOptions(
    request_timeout_s=5.0, level_timeout_s=20.0, warmup_requests_per_stream=0, gauges_every_s=0.0
)


@dataclass
class NumberedWork:
    """Prompts that tell their stream and place; `turns` above 1 makes conversations."""

    input_tokens: int = 16
    output_tokens: int = 5
    turns: int = 1
    think_time_s: float = 0.0
    at_s: tuple[float, ...] | None = None
    exact: bool = True
    shares_prefix: bool = False
    conditions: dict[str, object] = field(default_factory=lambda: {"kind": "numbered"})

    def items(self, stream: str) -> Iterator[WorkItem]:
        salt = sum(map(ord, stream)) % 4000
        for number in count():
            if self.at_s is not None and number >= len(self.at_s):
                return
            prompt = [salt + 1, number + 1, *range(1, self.input_tokens - 1)]
            item = WorkItem(prompt, self.output_tokens, self.input_tokens)
            if self.at_s is not None:
                item = replace(item, at_s=self.at_s[number])
            yield self._with_turns(item, 1)

    def _with_turns(self, item: WorkItem, turn: int) -> WorkItem:
        if turn >= self.turns:
            return item

        def following(text: str) -> WorkItem:
            after = WorkItem(f"before {text} after", self.output_tokens, turn=turn)
            return self._with_turns(after, turn + 1)

        return replace(item, next_turn=following, think_time_s=self.think_time_s)


def closed(concurrency: int = 4, requests: int = 12) -> LoadLevel:
    return LoadLevel("closed", requests, concurrency=concurrency)


def drive(
    stub: Stub,
    level: LoadLevel | None = None,
    work: NumberedWork | None = None,
    *,
    decoding: Decoding | None = None,
    listeners: Listeners | None = None,
    stream: str = "test",
    **options: Any,
) -> LevelRun:
    """`run_level` without warm-up; `options` change `NO_WARM_UP`."""
    return run_level(
        stub.address,
        level or closed(),
        work or NumberedWork(),
        stream=stream,
        decoding=decoding,
        options=replace(NO_WARM_UP, **options),
        listeners=listeners,
    )
