"""The cells of the trade table, the same in terminal and report. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.report import quality_words
from sweeper.report.quality_words import (
    BELOW_FLOOR,
    NATS,
    NOT_MEASURED,
    QualityChange,
    change_text,
)
from sweeper.report.trade.against import Figure
from sweeper.report.trade.storage import is_storage
from sweeper.report.trade.table import Trade, TradeRow
from sweeper.report.words import number, seconds
from sweeper.verdicts import Verdict

OTHER_LIMIT = "another memory limit"


def name_text(row: TradeRow) -> str:
    """What sets the row apart; the baseline by that word, and what is the baseline but tuned."""
    if row.is_baseline:
        return f"{row.label} (baseline)"
    return f"{row.label}, other settings" if row.as_baseline else row.label


def made_of_text(row: TradeRow) -> str:
    """``llmcompressor, 4 bits, group 64``, ``engine`` or nothing."""
    words = [row.tool] if row.tool else []
    if row.bits is not None:
        words.append(f"{row.bits} bits")
    if row.group_size is not None:
        # Recipes write -1 for a scale that a whole channel shares.
        words.append(f"group {row.group_size}" if row.group_size > 0 else "a scale a channel")
    return ", ".join(words)


def trial_text(row: TradeRow) -> str:
    """``trial 7``, ``trial 7, best of 3``, and what else it sets."""
    of = f", best of {row.trials}" if row.trials > 1 else ""
    rest = sorted(name for name in row.deployment if not is_storage(name))
    settings = " ".join(f"{name}={row.deployment[name]}" for name in rest)
    return f"trial {row.trial}{of}" + (f": {settings}" if settings else "")


def value_text(figure: Figure | None) -> str:
    """A value alone, a dash for what is not known."""
    return number(None if figure is None else figure.value)


def ratio_text(figure: Figure | None) -> str:
    """``x1.31`` of the baseline's; empty without a ratio."""
    return "" if figure is None or figure.ratio is None else f"x{figure.ratio:.2f}"


def ratio_interval_text(figure: Figure | None) -> str:
    """``[1.22, 1.40]``; empty without an interval."""
    if figure is None or figure.ratio_interval is None:
        return ""
    low, high = figure.ratio_interval
    return f"[{low:.2f},\N{NO-BREAK SPACE}{high:.2f}]"


def kv_text(row: TradeRow) -> Sequence[str]:
    """(tokens that fit, their multiple of the baseline's or why there is none)."""
    if row.kv_cache_tokens is None:
        return "-", ""
    tokens = f"{row.kv_cache_tokens.value:,.0f}"
    return tokens, OTHER_LIMIT if row.kv_other_limit else ratio_text(row.kv_cache_tokens)


def quality_text(row: TradeRow) -> Sequence[str]:
    """(the quality in words, its figures)."""
    quality = row.quality
    if quality is None:
        is_broken = row.verdict is Verdict.QUALITY_FAIL
        return BELOW_FLOOR if is_broken else NOT_MEASURED, ""
    loglik = change_text(quality.loglik, NATS)
    if row.verdict is Verdict.QUALITY_FAIL:
        return BELOW_FLOOR, loglik
    if row.is_baseline:
        return "reference", quality.shown
    return quality_words.quality_text(quality), quality.shown if quality.unit == NATS else loglik


def making_text(row: TradeRow) -> Sequence[str]:
    """(how long making its checkpoint took, whether it was there already)."""
    if row.made_s is None:
        return ("reused" if row.reused else "-"), ""
    return seconds(row.made_s), "reused" if row.reused else ""


def verdict_text(row: TradeRow) -> str:
    """The verdict, and whether it fell without a launch."""
    return str(row.verdict) if row.launched else f"{row.verdict}, not launched"


def failure_text(row: TradeRow) -> Sequence[str]:
    """(verdict and cause, remedy) of a row that does not work, nothing of one that does."""
    if row.verdict is Verdict.OK:
        return ()
    return f"{verdict_text(row)}: {row.cause}", f"Remedy: {row.remedy}" if row.remedy else ""


def ranking_quality(found: Trade) -> QualityChange | None:
    """The first row's that has one: its kind and name are the study's."""
    return next((row.quality for row in found.rows if row.quality is not None), None)
