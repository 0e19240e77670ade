"""The verdict of a confirmation in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sweeper.pareto.confirmed import BETTER, INCONCLUSIVE, Judgement

_MAX_UNSTABLE = 3


def gain_text(judgement: Judgement) -> str:
    """``+12.3 % [10.1, 14.5]``, empty if it is not known."""
    percent = judgement.percent
    if percent is None:
        return ""
    return f"{percent[0]:+.1f} % [{percent[1]:.1f}, {percent[2]:.1f}]"


def verdict_text(judgement: Judgement, *, slo: bool) -> str:
    """The verdict in one clause."""
    gained = gain_text(judgement)
    if judgement.verdict == BETTER and judgement.beats_promise:
        beside = f" ({gained} against them at {judgement.baseline_level})" if gained else ""
        return f"confirmed: it keeps an SLO that the defaults keep at no load{beside}"
    if judgement.verdict == BETTER:
        by = gained.removeprefix("+")
        what = f" in {judgement.metric}" if judgement.lower_is_better else ""
        return f"confirmed: better by {by}{what} than {_defaults(judgement, slo=slo)}"
    if judgement.verdict == INCONCLUSIVE:
        seen = f" ({gained})" if gained else ""
        return f"confirmation was inconclusive{seen}: {judgement.why}"
    return f"no significant gain over the default ({gained})"


def _defaults(judgement: Judgement, *, slo: bool) -> str:
    if slo and judgement.baseline_level != judgement.level:
        return "the defaults at the best load that keeps the SLO"
    return "the defaults at the same load"


def no_gain_headline(where: str, judgement: Judgement) -> str:
    """For the defaults, chosen because nothing was shown to be better."""
    return (
        f"{where}, the engine's defaults: no significant gain over the default. The best of the "
        f"others, trial {judgement.trial}, came to {gain_text(judgement)} when both were launched "
        "again."
    )


def confirmation_sentence(judgement: Judgement) -> str:
    """What was done, what it showed, and what would settle what is open."""
    sentences = [
        f"Trial {judgement.trial} and the defaults were launched {_times(judgement.pairs)} in "
        f"turns, with fresh prompts, {_compared(judgement)}."
    ]
    if judgement.kept is not None:
        kept, of = judgement.kept
        sentences.append(f"It kept the SLO in {kept} of {of} of these launches.")
    if judgement.noise_share is not None:
        sentences.append(
            f"One launch differs from the next by {judgement.noise_share * 100:.2g} % (one "
            "standard deviation) on this machine."
        )
    searched = judgement.searched_percent
    if searched is not None:
        sentences.append(
            f"The {searched:+.1f} % that the search had measured are not counted: they are what it "
            "was chosen for."
        )
    return " ".join([*sentences, *_open(judgement)])


def _times(pairs: int) -> str:
    return f"{pairs} times" if pairs > 1 else "again"


def _compared(judgement: Judgement) -> str:
    at = f"and compared at {judgement.level}"
    if judgement.level != judgement.baseline_level:
        at += f" with the defaults at {judgement.baseline_level}"
    return at


def _open(judgement: Judgement) -> list[str]:
    """What such a design cannot show, and what could."""
    if judgement.verdict == BETTER:
        return []
    told = []
    if judgement.visible_share is not None:
        told.append(f"A gain of {judgement.visible_share * 100:.2g} % or more would have shown.")
    if judgement.repeats_needed is not None:
        told.append(
            f"If the gain that was seen lasts, confirm.repeats={judgement.repeats_needed} would "
            "show it."
        )
    elif judgement.verdict == INCONCLUSIVE and judgement.percent is None:
        told.append(f"Both gave a figure in {judgement.pairs} of the turns; at least 2 are needed.")
    return told


def unstable_sentence(rows: Iterable[Mapping[str, Any]]) -> str:
    """Deployments that worked in the search and failed when they were launched again."""
    seen = {int(row["trial"]): str(row["unstable"]) for row in rows if row.get("unstable")}
    named = sorted(seen.items())[:_MAX_UNSTABLE]
    return " ".join(f"Trial {number} is unstable: {cause}." for number, cause in named)
