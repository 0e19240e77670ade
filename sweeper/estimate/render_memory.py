"""A verdict on memory as cells of a table, and as data."""

from __future__ import annotations

from typing import Any

from sweeper.estimate.memory import MemoryVerdict
from sweeper.estimate.memory_part import ACTIVATIONS, DRAFT, GRAPHS, RUNTIME, SEQUENCE, WEIGHTS
from sweeper.estimate.memory_sizes import Span

_PARTS = (WEIGHTS, DRAFT, ACTIVATIONS, GRAPHS, RUNTIME, SEQUENCE)
_HEAD = (
    "weights",
    "draft",
    "activ.",
    "graphs",
    "runtime",
    "1 seq.",
    "needed",
    "usable",
    "KV tokens",
    "sequences",
    "verdict",
    "margin",
)
CORNER_HEAD = ("deployment", *_HEAD)
ROW_HEAD = ("quantization", "tp", *_HEAD)


def explained() -> list[str]:
    """What the columns mean."""
    return [
        "Predicted memory of one device in GiB. 1 seq.: KV cache of the longest sequence;",
        "sequences: how many of them the cache holds; needed: from certainly to at most; margin:",
        "left over in the worst case (fits), missing in the best (does not), or as expected.",
    ]


def cells(memory: MemoryVerdict) -> tuple[str, ...]:
    """One row, see `explained`."""
    by_name = {part.name: part for part in memory.parts}
    sizes = [f"{by_name[name].expected_gib:.2f}" if name in by_name else "-" for name in _PARTS]
    most = memory.most_needed_gib
    needed = f"{memory.least_needed_gib:.1f}-{'?' if most is None else f'{most:.1f}'}"
    usable = memory.available_gib
    return (
        *sizes,
        needed,
        "unknown" if usable is None else f"{usable:.1f}",
        _expected(memory.kv_tokens, ",.0f"),
        _expected(memory.sequences, ".1f"),
        memory.verdict.replace("_", " "),
        "unknown" if memory.margin_gib is None else f"{memory.margin_gib:+.1f}",
    )


def _expected(span: Span | None, form: str) -> str:
    return "unknown" if span is None else format(span.expected, form)


def as_data(memory: MemoryVerdict) -> dict[str, Any]:
    """The verdict for programs; None stands for what is not known or not bounded."""
    return {
        "verdict": memory.verdict,
        "needed_gib": _rounded(memory.needed_gib),
        "least_needed_gib": _rounded(memory.least_needed_gib),
        "most_needed_gib": _rounded(memory.most_needed_gib),
        "available_gib": _rounded(memory.available_gib),
        "margin_gib": _rounded(memory.margin_gib),
        "parts": {
            part.name.replace(" ", "_"): {
                "least_gib": _rounded(part.least_gib),
                "expected_gib": _rounded(part.expected_gib),
                "most_gib": _rounded(part.most_gib),
                "measured": part.measured,
            }
            for part in memory.parts
        },
        "max_model_len": memory.length_tokens,
        "kv_tokens": _span(memory.kv_tokens, 0),
        "sequences": _span(memory.sequences, 2),
    }


def _span(span: Span | None, digits: int) -> dict[str, float] | None:
    if span is None:
        return None
    return {
        name: round(getattr(span, name), digits or None) for name in ("least", "expected", "most")
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
