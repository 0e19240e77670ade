from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config.schema import LoadConfig
from sweeper.pareto.contest import Contest, Entry
from sweeper.pareto.repeats import block_of
from sweeper.search.confirmation.design import Design
from sweeper.search.confirmation.turns import SPARE_BLOCKS, Turn, narrow, next_turn, order
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict
from tests.factories import open_load, outcome, point
from tests.pareto.again import again, searched

LEVEL = "concurrency 8"
CONTEST = Contest(
    "output_tokens_per_s_per_gpu", False, LEVEL, False, (Entry(2, LEVEL), Entry(1, LEVEL))
)
SEARCHED = searched(100, 120, 140)
DESIGN = Design(3, 2)

End = Callable[[Turn], Verdict]


def turn(outcomes: list[TrialOutcome], design: Design = DESIGN, seed: int = 1) -> Turn | None:
    return next_turn(outcomes, CONTEST, design, LoadConfig(), seed)


def launch(outcomes: list[TrialOutcome], asked: Turn, verdict: Verdict) -> TrialOutcome:
    number = max(o.number for o in outcomes) + 1 if asked.number is None else asked.number
    of = next(o for o in outcomes if o.number == asked.trial)
    points = [point(8)] if verdict is Verdict.OK else []
    made = again(number, of, asked.block, points, verdict=verdict)
    made.attempt = asked.attempt
    return made


def confirm(
    outcomes: list[TrialOutcome], end: End = lambda _: Verdict.OK, seed: int = 1, most: int = 60
) -> list[TrialOutcome]:
    """Launch until no turn is left, a failure of the surroundings once more."""
    made = list(outcomes)
    while (asked := turn(made, seed=seed)) is not None:
        assert len(made) < most, "it never ends"
        made.append(launch(made, asked, end(asked)))
    return made


def blocks(outcomes: list[TrialOutcome]) -> list[list[int]]:
    done = [o for o in outcomes if o.kind == "confirm"]
    return [
        [o.repeats for o in done if o.repeats is not None and block_of(o) == block]
        for block in sorted({block_of(o) for o in done})
    ]


def test_every_block_has_everyone_once_and_every_second_runs_backwards() -> None:
    found = blocks(confirm(SEARCHED))
    assert len(found) == 3
    assert all(sorted(block) == [0, 1, 2] for block in found)
    assert found[1] == found[0][::-1]


def test_order_is_the_seeds_and_balanced() -> None:
    drawn = {tuple(order([0, 1, 2], 1, seed)) for seed in range(60)}
    assert len(drawn) == 6
    firsts = Counter(order([0, 1, 2], 1, seed)[0] for seed in range(300))
    assert all(70 < count < 130 for count in firsts.values())
    assert order([0, 2], 1, 5) == [one for one in order([0, 1, 2], 1, 5) if one != 1]


@given(st.integers(0, 1000), st.integers(0, 8))
@settings(max_examples=40, deadline=None)
def test_a_confirmation_goes_on_from_wherever_it_stopped(seed: int, kept: int) -> None:
    whole = confirm(SEARCHED, seed=seed)
    resumed = confirm(whole[: len(SEARCHED) + kept], seed=seed)
    assert [(o.number, o.repeats, block_of(o)) for o in resumed] == [
        (o.number, o.repeats, block_of(o)) for o in whole
    ]


def test_a_second_attempt_that_was_cut_off_is_owed() -> None:
    made = list(SEARCHED)
    first = turn(made)
    assert first is not None
    made.append(launch(made, first, Verdict.INFRA))
    owed = turn(made)
    assert owed is not None
    assert (owed.trial, owed.block, owed.attempt) == (first.trial, first.block, 2)
    assert owed.number == made[-1].number


def test_a_block_without_the_defaults_is_made_up_for() -> None:
    broken = {(0, 2, 1), (0, 2, 2)}

    def end(asked: Turn) -> Verdict:
        lost = (asked.trial, asked.block, asked.attempt) in broken
        return Verdict.MEASUREMENT_INVALID if lost else Verdict.OK

    made = [o for o in confirm(SEARCHED, end) if o.kind == "confirm"]
    assert max(block_of(o) for o in made) == 4


def test_launches_that_never_give_a_figure_come_to_an_end() -> None:
    def end(asked: Turn) -> Verdict:
        return Verdict.INFRA if asked.trial == 0 else Verdict.OK

    made = [o for o in confirm(SEARCHED, end) if o.kind == "confirm"]
    assert max(block_of(o) for o in made) == DESIGN.repeats + SPARE_BLOCKS


def test_more_repeats_go_on_with_new_blocks() -> None:
    made = confirm(SEARCHED)
    more = next_turn(made, CONTEST, Design(5, 2), LoadConfig(), 1)
    assert more is not None and more.block == 4


def test_who_came_later_is_compared_in_blocks_of_its_own() -> None:
    other = Contest(CONTEST.metric, False, LEVEL, False, (Entry(2, LEVEL), Entry(3, LEVEL)))
    made = [*confirm(SEARCHED), outcome(30, deployment={"x": 1})]
    other = Contest(CONTEST.metric, False, LEVEL, False, (Entry(2, LEVEL), Entry(30, LEVEL)))
    while (asked := next_turn(made, other, DESIGN, LoadConfig(), 1)) is not None:
        made.append(launch(made, asked, Verdict.OK))
    new = [o for o in made if o.kind == "confirm" and block_of(o) > 3]
    assert Counter(o.repeats for o in new)[0] in {2, 3}
    assert Counter(o.repeats for o in made if o.kind == "confirm")[30] == 3
    assert Counter(o.repeats for o in made if o.kind == "confirm")[2] == 3, "it has had its turns"


def test_only_the_levels_that_matter_are_driven() -> None:
    points = [point(1), point(8), point(32)]
    given_levels = narrow(
        LoadConfig(concurrency=[1, 8, 32]), [outcome(0, points=points)], frozenset({LEVEL})
    )
    assert given_levels.concurrency == [8]
    found = LoadConfig(kind="open", levels="slo", rate_per_s=[1.0])
    rates = [point(load=open_load(rate)) for rate in (1.0, 4.0, 2.378)]
    levels = frozenset({"2.378 requests/s (poisson)", "4 requests/s (poisson)"})
    narrowed = narrow(found, [outcome(0, points=rates)], levels)
    assert (narrowed.levels, narrowed.rate_per_s) == ("given", [2.378, 4.0])
    replay = [point(load={"kind": "replay", "time_scale": scale}) for scale in (1.0, 2.0)]
    narrowed = narrow(
        LoadConfig(kind="replay"), [outcome(0, points=replay)], frozenset({"trace at 2x speed"})
    )
    assert narrowed.time_scale == [2.0]
