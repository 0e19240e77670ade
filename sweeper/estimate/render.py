"""An estimate as plain text. Every figure in it is predicted, and says so."""

from __future__ import annotations

from sweeper.estimate.corners import in_words
from sweeper.estimate.render_memory import CORNER_HEAD, ROW_HEAD, cells, explained
from sweeper.estimate.report import MemoryRow, SpaceEstimate

_SPEED_HEAD = (
    "quantization",
    "tp",
    "streams",
    "TTFT ≥ ms",
    "TPOT ≥ ms",
    "prefill ≤ tok/s",
    "decode ≤ tok/s",
    "output ≤ tok/s",
)
_SPEED = (
    ("ttft_floor_ms", ",.2f"),
    ("tpot_floor_ms", ",.3f"),
    ("prefill_tokens_per_s_ceiling", ",.0f"),
    ("decode_tokens_per_s_ceiling", ",.0f"),
    ("output_tokens_per_s_ceiling", ",.0f"),
)
_LEFT = {"quantization", "verdict", "deployment"}


def render(estimate: SpaceEstimate) -> str:
    """The estimate for a terminal: infeasible part by rule, memory a device, speed of light."""
    lines = [_summary(estimate)]
    if estimate.baseline:
        lines.append("The engine's own defaults cannot run here: " + "; ".join(estimate.baseline))
    for rule, count in estimate.by_rule.items():
        cause, remedy = estimate.examples[rule]
        lines.append(f"  {_percent(count, estimate.examined):>6}  {rule}: {cause}")
        lines.append(f"          remedy: {remedy}")
    lines += _corners(estimate)
    if estimate.memory:
        lines += ["", "By quantization and tensor parallelism, the rest at its default:"]
        lines += _table(ROW_HEAD, [_memory(row) for row in estimate.memory])
        lines += ["", _speed_title(estimate)]
        lines += _table(_SPEED_HEAD, [each for row in estimate.memory for each in _speed(row)])
    return "\n".join(lines)


def _summary(estimate: SpaceEstimate) -> str:
    total = "a continuum of" if estimate.size is None else f"{estimate.size:,}"
    low, high = (f"{100 * end:.1f}" for end in estimate.infeasible_interval)
    looked = f" ({low} to {high} %: a random sample of {estimate.examined:,})"
    looked = looked if estimate.sampled else ""
    share = _percent(estimate.infeasible, estimate.examined)
    return f"Predicted: {share} of {total} deployments cannot work here{looked}."


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def _speed_title(estimate: SpaceEstimate) -> str:
    source = "measured here" if estimate.peaks_source == "measured" else "of the data sheet"
    return (
        f"Speed of light, predicted from peaks {source}, for {estimate.input_tokens:,.0f} tokens "
        f"in and {estimate.output_tokens:,.0f} out:"
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    rows = [head, *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    left = {column for column, name in enumerate(head) if name in _LEFT}
    return ["  " + "  ".join(_pad(row, widths, left)).rstrip() for row in rows]


def _pad(row: tuple[str, ...], widths: list[int], left: set[int]) -> list[str]:
    return [
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _corners(estimate: SpaceEstimate) -> list[str]:
    """Default and ends of the space, and what they are."""
    if not estimate.corners:
        return []
    rows = [(corner.name, *cells(corner.memory)) for corner in estimate.corners]
    named = [f"  {corner.name}: {in_words(corner.deployment)}" for corner in estimate.corners]
    return ["", *explained(), *_table(CORNER_HEAD, rows), *named]


def _memory(row: MemoryRow) -> tuple[str, ...]:
    return row.quantization, str(row.tensor_parallel_size), *cells(row.memory)


def _speed(row: MemoryRow) -> list[tuple[str, ...]]:
    """A line a number of streams."""
    return [
        (
            row.quantization,
            str(row.tensor_parallel_size),
            str(streams),
            *(format(found[name], form) if name in found else "unknown" for name, form in _SPEED),
        )
        for streams, found in row.speed.items()
    ]
