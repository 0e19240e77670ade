"""The fixed suite of prompts that quality is judged on, and its hash.

Kinds go round (english, code, chinese, structured, short), so that the first N prompts are
balanced whatever N is; the long ones come last, because a slow machine pays for every token.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class SuitePrompt:
    """One prompt.

    Attributes:
        id: unique name.
        kind: english | code | chinese | structured | short | long.
        text: what the model continues.
    """

    id: str
    kind: str
    text: str


def load_suite(max_prompts: int | None = None) -> list[SuitePrompt]:
    """The first `max_prompts` prompts of the suite, all of them for None.

    Raises:
        ValueError: `max_prompts` is below 1.
    """
    if max_prompts is not None and max_prompts < 1:
        raise ValueError(f"a suite of {max_prompts} prompts cannot judge anything")
    return [SuitePrompt(**fields) for fields in _data()["prompts"]][:max_prompts]


def suite_version() -> int:
    """Number that changes with the prompts."""
    return int(_data()["version"])


def suite_hash(prompts: Sequence[SuitePrompt]) -> str:
    """12 hex digits over the prompts and their order: scores are compared only within one."""
    text = json.dumps([[p.id, p.kind, p.text] for p in prompts], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _data() -> dict[str, Any]:
    path = resources.files("sweeper.quality").joinpath("data", "suite.json")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data
