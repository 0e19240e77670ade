"""Quality of two sides: which, and whether their difference is beyond its error. Pure.

Within a study both sides were held against one reference, token by token or question by question.
The difference of their two changes has a much smaller error than that of their two scores, and is
taken wherever both changes were kept. Its error adds the squares of both: what they share (the
reference's own noise) would make it smaller still.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sweeper.quality.floor import Change, quantile_95
from sweeper.report.comparison.results import Judgement, Metric, Result
from sweeper.report.comparison.side import Side
from sweeper.report.quality_words import PER_CENT, change_text, hypot_se, unit_of
from sweeper.trial.outcome import QualityScore

_AGREEMENT, _PERPLEXITY = "agreement", "perplexity"


def compare_quality(a: Side, b: Side) -> Result | None:
    """The quality that ranks on both sides, else agreement; None if neither side has one.

    Scores of two studies were held against two references and are only shown.
    """
    told = [side.quality for side in (a, b)]
    if len({score.ranked_by for score in told if score is not None}) > 1:
        told = [None if score is None else replace(score, ranked_by=_AGREEMENT) for score in told]
    left, right = told
    some = left or right
    if some is None:
        return None
    more_is_better = some.score >= 0.0
    shown = [_shown(score) for score in (left, right)]
    result = Result(
        metric=Metric("quality", some.name, "quality", more_is_better),
        a=shown[0][0],
        b=shown[1][0],
        a_interval=shown[0][1],
        b_interval=shown[1][1],
        ratio=None,
        ratio_interval=None,
        judgement=Judgement.CANNOT_TELL,
        word="",
    )
    if left is None or right is None:
        return replace(
            result, word=f"cannot tell ({'a' if left is None else 'b'} does not have it)"
        )
    if a.study is None or a.study != b.study:
        return replace(result, word="cannot tell (each against a reference of its own)")
    if left.key == right.key and left.score == right.score:
        return replace(
            result,
            judgement=Judgement.NO_DIFFERENCE,
            word="no difference (nothing that differs can change the output: measured once)",
            change=0.0,
        )
    return _judged(result, *_difference(a, b, left, right), unit_of(right))


def _shown(score: QualityScore | None) -> tuple[float | None, list[float] | None]:
    """(a figure as people write it, its 95 % interval)."""
    if score is None:
        return None, None
    if score.score_se is None:
        return abs(score.score), None
    reach = quantile_95(score.clusters) * score.score_se
    if score.ranked_by == _PERPLEXITY:
        ends = [math.exp(-score.score - reach), math.exp(-score.score + reach)]
        return math.exp(-score.score), ends
    ends = [abs(score.score) - reach, abs(score.score) + reach]
    if unit_of(score) == PER_CENT:
        ends = [max(0.0, ends[0]), min(1.0, ends[1])]
    return abs(score.score), ends


def _judged(result: Result, change: Change, how: str, unit: str) -> Result:
    if not math.isfinite(change.reach):
        judgement, word = Judgement.CANNOT_TELL, f"cannot tell ({change_text(change, unit)})"
    elif change.is_none:
        judgement = Judgement.NO_DIFFERENCE
        word = f"no difference that its error allows ({change_text(change, unit)}, {how})"
    else:
        judgement = Judgement.BETTER if change.value > 0 else Judgement.WORSE
        size = change_text(replace(change, value=abs(change.value)), unit).lstrip("+")
        word = f"{judgement} by {size} ({how})"
    ends = [change.value - change.reach, change.value + change.reach]
    return replace(
        result,
        judgement=judgement,
        word=word,
        change=change.value,
        change_interval=ends if all(map(math.isfinite, ends)) else None,
    )


def _difference(a: Side, b: Side, left: QualityScore, right: QualityScore) -> tuple[Change, str]:
    """(quality of b minus that of a, how it was measured).

    What a side that is the reference would add is in the other's change already.
    """
    ours, theirs = left.against_reference, right.against_reference
    if ours is None or theirs is None:
        return Change(
            right.score - left.score, hypot_se(left.score_se, right.score_se)
        ), "not paired"
    if a.is_reference:
        return theirs, "paired"
    if b.is_reference:
        return replace(ours, value=-ours.value), "paired"
    known = [change.clusters for change in (ours, theirs) if change.clusters is not None]
    clusters = min(known) if known else None
    return Change(theirs.value - ours.value, math.hypot(ours.se, theirs.se), clusters), "paired"
