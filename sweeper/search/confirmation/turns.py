"""Whose turn it is in a confirmation. Pure: everything follows from the journal.

Launches come in blocks, one of every deployment in each. The order inside a block is drawn by the
study's seed, and every second block runs backwards (A B C, C B A), so that none of them is always
the first or the last. A block that was broken off is completed; one in which the defaults gave no
figure is made up for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweeper.config.schema import LoadConfig
from sweeper.load.level import BATCH, CLOSED, REPLAY, level_name
from sweeper.pareto.contest import Contest
from sweeper.pareto.points import latest_attempts
from sweeper.pareto.repeats import BASELINE, CONFIRM, CONFIRMATION, block_of
from sweeper.search.confirmation.design import Design
from sweeper.trial.ladder import pressure
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

SPARE_BLOCKS = 2
"""Blocks beyond those asked for that may make up for launches without a figure."""


@dataclass(frozen=True)
class Turn:
    """A launch that repeats a trial's deployment.

    Attributes:
        trial: number of the trial that it repeats.
        block: which block it belongs to, counted from 1.
        deployment, deployment_hash: of that trial.
        load: the ladder, cut down to the levels that matter.
        number: of the trial it goes on with; None for a new one.
        attempt: which launch of that trial it is.
    """

    trial: int
    block: int
    deployment: Mapping[str, Any]
    deployment_hash: str
    load: LoadConfig
    number: int | None = None
    attempt: int = 1

    def conditions(self) -> dict[str, Any]:
        """Its part of the manifest."""
        return {CONFIRMATION: {"repeats": self.trial, "block": self.block}}


def next_turn(
    outcomes: Sequence[TrialOutcome],
    contest: Contest,
    design: Design,
    load: LoadConfig,
    seed: int,
) -> Turn | None:
    """The next launch, None if all that were asked for are done.

    Args:
        outcomes: the journal.
        contest: who is compared, from the search's trials.
        design: how often.
        load: the study's ladder.
        seed: of the order.
    """
    latest = latest_attempts(outcomes)
    own = next((o for o in latest if o.kind == BASELINE), None)
    if own is None:
        return None
    members = [own.number, *(entry.trial for entry in contest.entries[: design.entries])]
    done = [outcome for outcome in latest if outcome.kind == CONFIRM]
    narrowed = narrow(load, latest, contest.levels)
    known = {outcome.number: outcome for outcome in latest}
    owed = next((o for o in done if _is_owed(o) and o.repeats in members), None)
    if owed is not None:
        turn = _turn(known[owed.repeats or 0], block_of(owed), narrowed)
        return replace(turn, number=owed.number, attempt=owed.attempt + 1)
    wanted = _wanted(members, done, design, seed)
    return None if wanted is None else _turn(known[wanted[0]], wanted[1], narrowed)


def _turn(trial: TrialOutcome, block: int, load: LoadConfig) -> Turn:
    return Turn(trial.number, block, trial.deployment, trial.deployment_hash, load)


def _is_owed(outcome: TrialOutcome) -> bool:
    """A second attempt that the end of an earlier run cut off."""
    return outcome.launched and outcome.attempt == 1 and outcome.verdict.is_retryable


def _wanted(
    members: Sequence[int], done: Sequence[TrialOutcome], design: Design, seed: int
) -> tuple[int, int] | None:
    """(trial, block) of the next launch."""
    last = max((block_of(outcome) for outcome in done), default=0)
    open_block = max(1, last)
    for block in (open_block, open_block + 1):
        lacking = _lacking(members, done, design, before=block)
        if not lacking or _is_used_up(members, done, design, before=block):
            return None
        launched = {outcome.repeats for outcome in done if block_of(outcome) == block}
        left = [m for m in order((members[0], *lacking), block, seed) if m not in launched]
        if left:
            return left[0], block
    return None


def order(members: Sequence[int], block: int, seed: int) -> list[int]:
    """Members in the order of a block: drawn for every odd one, backwards in the even one after.

    Drawn by member, so that the rest keeps its order where one falls out.
    """
    pair = (block + 1) // 2
    drawn = sorted(members, key=lambda member: random.Random(f"{seed}/{pair}/{member}").random())
    return drawn if block % 2 else drawn[::-1]


def _lacking(
    members: Sequence[int], done: Sequence[TrialOutcome], design: Design, *, before: int
) -> list[int]:
    """Entries that have too few figures beside the defaults' in the blocks before this one."""
    measured = {
        (outcome.repeats, block_of(outcome))
        for outcome in done
        if outcome.verdict is Verdict.OK and outcome.valid_points
    }
    own = {block for trial, block in measured if trial == members[0] and block < before}
    pairs = {m: sum((m, block) in measured for block in own) for m in members[1:]}
    return [member for member, count in pairs.items() if count < design.repeats]


def _is_used_up(
    members: Sequence[int], done: Sequence[TrialOutcome], design: Design, *, before: int
) -> bool:
    """Whether so many launches went without a figure that no further block is worth it."""
    lacking = _lacking(members, done, design, before=before)
    tried = {m: {block_of(o) for o in done if o.repeats == m} for m in members}
    most = design.repeats + SPARE_BLOCKS
    return all(len({block for block in tried[m] if block < before}) >= most for m in lacking)


def narrow(
    load: LoadConfig, outcomes: Iterable[TrialOutcome], levels: frozenset[str]
) -> LoadConfig:
    """The ladder with these levels only, whether they were given or found.

    Args:
        load: the study's.
        outcomes: whose points say what the levels ask.
        levels: their names.
    """
    asked: dict[str, Mapping[str, Any]] = {}
    for outcome in outcomes:
        for point in outcome.points:
            if point.level in levels:
                asked.setdefault(level_name(point.load), point.load)
    ladder = sorted(asked.values(), key=pressure)
    if load.kind in {CLOSED, BATCH}:
        return replace(
            load, levels="given", concurrency=[int(one["concurrency"]) for one in ladder]
        )
    if load.kind == REPLAY:
        scales = [float(one.get("time_scale", 1.0)) for one in ladder]
        return replace(load, levels="given", time_scale=scales)
    return replace(load, levels="given", rate_per_s=[float(one["rate_per_s"]) for one in ladder])
