"""An estimate as plain text. Every figure in it is predicted, and says so."""

from __future__ import annotations

from sweeper.estimate.report import MemoryRow, SpaceEstimate

_HEAD = (
    "quantization",
    "tp",
    "weights GiB",
    "left GiB",
    "KV tokens",
    "verdict",
    "decode ≤ tok/s",
    "prefill ≤ tok/s",
)


def render(estimate: SpaceEstimate) -> str:
    """The estimate for a terminal: infeasible part by rule, then memory and bounds a device."""
    lines = [_summary(estimate)]
    if estimate.baseline:
        lines.append("The engine's own defaults cannot run here: " + "; ".join(estimate.baseline))
    for rule, count in estimate.by_rule.items():
        cause, remedy = estimate.examples[rule]
        lines.append(f"  {_percent(count, estimate.examined):>6}  {rule}: {cause}")
        lines.append(f"          remedy: {remedy}")
    if estimate.memory:
        lines += ["", "Predicted, a device (before activations and graphs):", *_table(estimate)]
    return "\n".join(lines)


def _summary(estimate: SpaceEstimate) -> str:
    total = "a continuum of" if estimate.size is None else f"{estimate.size:,}"
    looked = f" (from a random sample of {estimate.examined:,})" if estimate.sampled else ""
    share = _percent(estimate.infeasible, estimate.examined)
    return f"Predicted: {share} of {total} deployments cannot work here{looked}."


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def _table(estimate: SpaceEstimate) -> list[str]:
    rows = [_HEAD, *(_cells(row) for row in estimate.memory)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return ["  " + "  ".join(_pad(row, widths)).rstrip() for row in rows]


def _pad(row: tuple[str, ...], widths: list[int]) -> list[str]:
    left = {0, 5}
    return [
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _cells(row: MemoryRow) -> tuple[str, ...]:
    return (
        row.quantization,
        str(row.tensor_parallel_size),
        f"{row.memory.weights_gib:.2f}",
        f"{row.memory.margin_gib:.2f}",
        f"{row.memory.kv_tokens:,}",
        row.memory.verdict.replace("_", " "),
        _bound(row.speed.decode_tokens_per_s),
        _bound(row.speed.prefill_tokens_per_s),
    )


def _bound(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"
