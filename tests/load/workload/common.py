"""What the tests of workloads share: a bank of tokens and a short way to make one."""

from __future__ import annotations

from itertools import islice
from typing import Any

from sweeper.config.schema import WorkloadConfig
from sweeper.load.prompts import sentences
from sweeper.load.workload.item import WorkItem, Workload
from sweeper.load.workload.registry import create
from tests.load.stub import tokens_of

BANK = [tokens_of(sentence) for sentence in sentences()]


def workload(kind: str, *, seed: int = 1, text: bool = False, **fields: Any) -> Workload:
    cfg = WorkloadConfig(name=kind, kind=kind, **fields)
    return create(cfg, sentences() if text else BANK, seed)


def take(work: Workload, n: int, stream: str = "trial-1/c8") -> list[WorkItem]:
    return list(islice(work.items(stream), n))
