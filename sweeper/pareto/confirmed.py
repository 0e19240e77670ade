"""What confirming launches say: better, no significant gain, or inconclusive. Pure.

The search's own figures choose who is launched again, and then count for nothing: what was chosen
for the best of many figures owes a part of it to luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.metrics.paired import MIN_PAIRS, BlockFit, Effect, fit_blocks, half_width
from sweeper.pareto.contest import Contest, Entry, contest_of, deciding
from sweeper.pareto.repeats import BASELINE
from sweeper.pareto.rule import Row, Rule, misses

BETTER, NO_GAIN, INCONCLUSIVE = "better", "no gain", "inconclusive"

_HOPELESS = math.log(2.0)
"""Half an interval, on the logarithm, that would hide even twice the speed."""
_MOST_REPEATS = 50


@dataclass(frozen=True)
class Judgement:
    """What the launches say of one entry against the defaults.

    Attributes:
        verdict: `BETTER`, `NO_GAIN` or `INCONCLUSIVE`.
        trial, level: of the entry.
        baseline_level: load level of the defaults that it is compared with.
        metric, lower_is_better: what decides.
        ratio, low, high: entry / defaults with its 95 % interval, which holds for all entries at
            once; None where there are too few launches.
        pairs: blocks in which both gave a figure.
        entries: how many deployments were compared at once.
        noise_share: coefficient of variation between launches; None where it is not known.
        searched_ratio: what the search had measured, which is not used.
        kept: launches that keep the promise, of how many; None without one.
        beats_promise: True if it keeps a promise that the defaults do not keep.
        why: of an inconclusive one.
        visible_share: the smallest gain that so many launches would have shown.
        repeats_needed: launches of each that would show the gain that was seen, if it lasts.
    """

    verdict: str
    trial: int
    level: str
    baseline_level: str
    metric: str
    lower_is_better: bool
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    entries: int = 1
    noise_share: float | None = None
    searched_ratio: float | None = None
    kept: tuple[int, int] | None = None
    beats_promise: bool = False
    why: str = ""
    visible_share: float | None = None
    repeats_needed: int | None = None

    @property
    def percent(self) -> tuple[float, float, float] | None:
        """Gain over the defaults and its interval's ends, more is better; None if not known.

        Of a metric of which less is better, how much less it is.
        """
        if self.ratio is None or self.low is None or self.high is None:
            return None
        if self.lower_is_better:
            return -_change(self.ratio), -_change(self.high), -_change(self.low)
        return _change(self.ratio), _change(self.low), _change(self.high)

    @property
    def searched_percent(self) -> float | None:
        """The gain that the search had measured, likewise."""
        if self.searched_ratio is None:
            return None
        change = _change(self.searched_ratio)
        return -change if self.lower_is_better else change

    @property
    def is_eligible(self) -> bool:
        """Whether it may be recommended in the place of the defaults."""
        keeps = self.kept is None or self.kept[0] == self.kept[1]
        return keeps and (self.verdict == BETTER or self.beats_promise)


def _change(ratio: float) -> float:
    return (ratio - 1.0) * 100.0


def judge(rows: Sequence[Row], rule: Rule) -> tuple[Judgement, ...]:
    """What was found of every deployment that was launched again, the search's best first.

    Empty as long as the best one that runs was not: then what holds is what the search measured.

    Args:
        rows: as for `contest_of`, with their repeats.
        rule: the recommendation's own.
    """
    repeated = {int(row["trial"]) for row in rows if "repeats" in row and row["kind"] != BASELINE}
    contest = contest_of(rows, rule, len(repeated)) if repeated else None
    if contest is None:
        return ()
    table = {(int(row["trial"]), str(row["level"])): row for row in rows}
    own = next((row for row in rows if row["kind"] == BASELINE), None)
    control = None if own is None else table.get((int(own["trial"]), contest.baseline_level))
    found = [(entry, table.get((entry.trial, entry.level))) for entry in contest.entries]
    known = [(entry, row) for entry, row in found if row is not None and "repeats" in row]
    if control is None or "repeats" not in control or not known or known[0] != found[0]:
        return ()
    fit = _fit(control, [row for _, row in known], contest.metric)
    effects = fit.effects if fit is not None else (None,) * len(known)
    lower, count = contest.lower_is_better, len(contest.entries)
    return tuple(
        _judgement(contest, row, control, rule, _told(fit, effect, lower, count))
        for (_, row), effect in zip(known, effects, strict=True)
    )


def judge_point(row: Row, rows: Sequence[Row], rule: Rule) -> Judgement | None:
    """What the launches say of one point beside the defaults at the same load, whatever the rule.

    The others that were launched again at that load are compared too, so that the interval holds
    for whichever of them was picked.

    Returns:
        None if the point or the defaults were not launched again at that load.
    """
    there = [one for one in rows if one["level"] == row["level"] and "repeats" in one]
    control = next((one for one in there if one["kind"] == BASELINE), None)
    others = [one for one in there if one["kind"] != BASELINE]
    if control is None or not any(one is row for one in others):
        return None
    metric, lower = deciding(row, rule)
    entries = tuple(Entry(int(one["trial"]), str(one["level"])) for one in others)
    keeps = not misses(control, rule.slo)
    contest = Contest(metric, lower, str(row["level"]), keeps, entries)
    fit = _fit(control, others, metric)
    place = next(index for index, one in enumerate(others) if one is row)
    effect = None if fit is None else fit.effects[place]
    return _judgement(contest, row, control, rule, _told(fit, effect, lower, len(others)))


def _fit(control: Row, entries: Sequence[Row], metric: str) -> BlockFit | None:
    """Blocks in rows, the defaults in the first column."""
    columns = [_by_block(row, metric) for row in (control, *entries)]
    blocks = sorted({block for column in columns for block in column})
    figures = [[column.get(block, math.nan) for column in columns] for block in blocks]
    alone = control.get("searched", {}).get(metric)
    return fit_blocks(figures, [] if alone is None else [alone]) if blocks else None


def _by_block(row: Row, metric: str) -> dict[int, float]:
    repeats = row["repeats"]
    return {one["block"]: one["metrics"][metric] for one in repeats if metric in one["metrics"]}


def _judgement(
    contest: Contest, row: Row, control: Row, rule: Rule, told: dict[str, Any]
) -> Judgement:
    kept = _kept(row, rule)
    always = kept is not None and kept[0] == kept[1] >= MIN_PAIRS
    beats = always and not contest.baseline_keeps and bool(misses(control, rule.slo))
    if beats:
        told["verdict"] = BETTER
    return Judgement(
        trial=int(row["trial"]),
        level=str(row["level"]),
        baseline_level=contest.baseline_level,
        metric=contest.metric,
        lower_is_better=contest.lower_is_better,
        entries=len(contest.entries),
        pairs=len(_by_block(row, contest.metric).keys() & _by_block(control, contest.metric)),
        searched_ratio=_searched_ratio(row, control, contest.metric),
        kept=kept,
        beats_promise=beats,
        **told,
    )


def _told(
    fit: BlockFit | None, effect: Effect | None, lower_is_better: bool, entries: int
) -> dict[str, Any]:
    """Verdict and figures."""
    if fit is None or effect is None:
        few = "too few of the launches gave a figure beside one of the defaults"
        return {"verdict": INCONCLUSIVE, "why": few}
    if fit.exact:
        same = "every launch gave the same figure to the last digit: nothing was measured anew"
        return {"verdict": INCONCLUSIVE, "why": same}
    gained = -effect.log_ratio if lower_is_better else effect.log_ratio
    is_better = gained > effect.half_width
    told: dict[str, Any] = {
        "verdict": BETTER if is_better else NO_GAIN,
        "ratio": effect.ratio,
        "low": effect.low,
        "high": effect.high,
        "noise_share": math.sqrt(math.expm1(fit.sd_log**2)),
        "visible_share": math.expm1(effect.half_width),
        "repeats_needed": None if is_better else _needed(fit.sd_log, gained, effect.pairs, entries),
    }
    if not is_better and effect.half_width > _HOPELESS:
        told["verdict"] = INCONCLUSIVE
        told["why"] = "launches differ so much that even twice the speed would not show"
    return told


def _needed(sd_log: float, gained: float, pairs: int, entries: int) -> int | None:
    """Launches of each after which such a gain would show; None if that is out of reach."""
    for repeats in range(pairs + 1, _MOST_REPEATS + 1) if gained > 0 else ():
        if half_width(sd_log, repeats, entries) < gained:
            return repeats
    return None


def _kept(row: Row, rule: Rule) -> tuple[int, int] | None:
    """(launches that keep the promise, all launches); None without a promise."""
    if not rule.slo:
        return None
    alone = [{**row, **one["metrics"], "repeats": ()} for one in row["repeats"]]
    return sum(not misses(one, rule.slo) for one in alone), len(alone)


def _searched_ratio(row: Row, control: Row, metric: str) -> float | None:
    ours = row.get("searched", {}).get(metric)
    theirs = control.get("searched", {}).get(metric)
    return ours / theirs if ours and theirs else None
