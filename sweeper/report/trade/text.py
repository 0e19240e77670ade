"""The trade between quality, speed and memory in the terminal. Plain text, returned."""

from __future__ import annotations

from sweeper.redaction import shown
from sweeper.report.terminal import plain, table
from sweeper.report.trade.against import Figure
from sweeper.report.trade.table import LATENCIES, THROUGHPUT, Trade, TradeRow
from sweeper.report.trade.words import (
    OTHER_LIMIT,
    failure_text,
    kv_text,
    name_text,
    quality_text,
    ranking_quality,
    ratio_text,
    value_text,
)
from sweeper.verdicts import Verdict

_E2E = LATENCIES[-1]


def render_trade(found: Trade) -> str:
    """One line a way to store weights and cache; empty if there is nothing to choose among.

    Failures have their verdict and cause in the place of the quality. The whole table, with
    intervals, is in the report.
    """
    if not found.says_something:
        return ""
    ranking = ranking_quality(found)
    name = "" if ranking is None else f": {shown(ranking.name)}"
    where = "" if found.level is None else f", speeds at {found.level}"
    predicted = " (predicted)" if found.predicted else ""
    made = table(
        f"what quantization buys, and what it costs{predicted}{where}",
        ["weights and cache", f"quality{name}"],
        ["tokens/s", "one\nstream", "E2E\nP95 ms", "checkpoint\nGiB", "KV cache\ntokens"],
    )
    made.padding = (0, 1, 0, 0)
    for row in found.rows:
        made.add_row(*_cells(row))
    return plain(made)


def _cells(row: TradeRow) -> list[str]:
    from rich.markup import escape

    tokens, gain = kv_text(row)
    gain = "" if gain == OTHER_LIMIT else gain
    numbers = [
        _figure(row.speeds.get(THROUGHPUT)),
        _figure(row.single_stream),
        _figure(row.speeds.get(_E2E)),
        _figure(row.checkpoint_gib),
        f"{tokens} {gain}".strip(),
    ]
    words = [name_text(row), _quality(row)]
    return [*(escape(shown(word)) for word in words), *numbers]


def _quality(row: TradeRow) -> str:
    if row.verdict is Verdict.OK:
        return quality_text(row)[0]
    return failure_text(row)[0]


def _figure(figure: Figure | None) -> str:
    return f"{value_text(figure)} {ratio_text(figure)}".strip()
