from __future__ import annotations

from itertools import pairwise

from sweeper.search.policy.expect import expectation
from sweeper.search.policy.goals import figures, goal, sight
from sweeper.search.policy.rows import ROWS, best_first, kept
from sweeper.space.canonical import baseline, canonical
from tests.factories import outcome, point
from tests.search.policy.test_next_best import Told
from tests.search.policy.toy import BEST_DEPLOYMENT, LEVELS, SPACE, measured, objective


def test_of_very_many_outcomes_the_best_and_an_even_sample_are_kept() -> None:
    many = [
        outcome(
            number,
            points=[point(level, throughput=100.0 + number % 977) for level in LEVELS],
        )
        for number in range(1000)
    ]
    rows = kept(objective(), many)
    assert len(rows) <= ROWS + 1
    best = best_first(objective(), many)[: ROWS // 2]
    assert {one.number for one in best} <= {one.number for one in rows}
    assert max(b.number - a.number for a, b in pairwise(rows)) < 30
    assert kept(objective(), many[:ROWS]) == many[:ROWS]


def test_expectations_are_taken_as_measurements_are() -> None:
    of = objective()
    base = canonical(SPACE, baseline(SPACE))
    truth = [measured(base, 0), measured(BEST_DEPLOYMENT, 1)]
    sights = [seen for one in truth if (seen := sight(of, one)) is not None]
    chosen = goal(of, sights)
    guide = Told(lambda deployment: measured(deployment, 1).points if deployment else [])
    expected = expectation(of, guide)([base, BEST_DEPLOYMENT], chosen)
    assert (expected[1] == figures(chosen, sights)[1]).all()
    assert (expected[0] != expected[0]).all()
