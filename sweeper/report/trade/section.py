"""The trade between quality, speed and memory in the report: its table and its notes."""

from __future__ import annotations

from html import escape

from sweeper.redaction import shown
from sweeper.report.tables import table
from sweeper.report.trade.against import Figure
from sweeper.report.trade.table import LATENCIES, THROUGHPUT, Trade, TradeRow
from sweeper.report.trade.words import (
    OTHER_LIMIT,
    failure_text,
    kv_text,
    made_of_text,
    making_text,
    name_text,
    quality_text,
    ranking_quality,
    ratio_interval_text,
    ratio_text,
    trial_text,
    value_text,
)
from sweeper.report.words import METRIC_LABELS
from sweeper.verdicts import Verdict

TITLE = "What quantization buys, and what it costs"
CAPTION = (
    "A mark is a way to store weights and cache, as large as its checkpoint. Right is better "
    "output, up is more throughput; bars are 95 % intervals. Crosses are broken output."
)


def trade_section(found: Trade, drawing: str = "") -> str:
    """How to read it, figure and table; nothing if there is nothing to choose among.

    Args:
        found: the table.
        drawing: the figure's place in the page, as HTML.
    """
    if not found.says_something:
        return ""
    return "\n".join([_notes(found), drawing, _rows(found)])


def _notes(found: Trade) -> str:
    ranking = ranking_quality(found)
    quality = f"Quality is {shown(ranking.name)}. " if ranking is not None else ""
    sentences = [
        f"{quality}Below each figure stands its multiple of the baseline's, with a 95 % interval "
        "where there is one. ± reaches to the ends of a 95 % interval: a change inside it is no "
        "change.",
        "A row is the fastest of the deployments that share its weights and its cache.",
        *(
            ["“Other settings”: stored as the defaults store it, with other settings beside."]
            if any(row.as_baseline for row in found.rows)
            else []
        ),
    ]
    if any(row.kv_other_limit for row in found.rows):
        sentences.append(
            f"“{OTHER_LIMIT}”: no unquantized launch had the same gpu_memory_utilization on as "
            "many devices, so the room of its KV cache cannot be compared."
        )
    if found.predicted:
        sentences.append("The figures come from a model of an engine: predicted, not measured.")
    return f"<p class=sub>{escape(' '.join(sentences))}</p>"


def _rows(found: Trade) -> str:
    where = f" at {found.level}" if found.level is not None else ""
    columns = [
        "Weights and cache",
        "Quality, or why it failed",
        f"{METRIC_LABELS[THROUGHPUT]}{where}",
        "One stream tokens/s",
        *(METRIC_LABELS[name] for name in LATENCIES),
        "Checkpoint GiB",
        "In memory GiB",
        "KV cache tokens",
        "Made in",
    ]
    looks = [_look(row) for row in found.rows]
    cells = [_cells(row) for row in found.rows]
    numeric = range(2, len(columns) - 1)
    made = table(columns, cells, looks=looks, numeric=numeric, stacked=True)
    return f"<div class=trade>{made}</div>"


def _look(row: TradeRow) -> str:
    if row.is_baseline:
        return "baseline"
    return "crossed" if row.verdict is Verdict.QUALITY_FAIL else ""


def _cells(row: TradeRow) -> list[str]:
    name = (name_text(row), made_of_text(row), trial_text(row))
    speeds = [row.speeds.get(THROUGHPUT), row.single_stream, *map(row.speeds.get, LATENCIES)]
    return [
        _lines(*name),
        _lines(*quality_text(row), *failure_text(row)),
        *map(_figure, speeds),
        _figure(row.checkpoint_gib),
        _figure(row.model_memory_gib),
        _lines(*kv_text(row)),
        _lines(*making_text(row)),
    ]


def _figure(figure: Figure | None) -> str:
    return _lines(value_text(figure), ratio_text(figure), ratio_interval_text(figure))


def _lines(*parts: str) -> str:
    """The lines of a cell; a part with breaks in it is one line."""
    return "\n".join(" ".join(shown(part).splitlines()) for part in parts if part)
