"""Every sampler on a conditional space with a corner that fails, and after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.space.canonical import enumerate_canonical
from sweeper.verdicts import Verdict
from tests.search.policy.toy import SIZE, SPACE, Study, fails, worth

KINDS = ["gp", "staged", "tpe", "nsgaii", "random", "qmc", "grid"]
EVERYTHING = enumerate_canonical(SPACE, 1000) or []
BEST = sorted((worth(one) for one in EVERYTHING), reverse=True)
FAILING = sum(map(fails, EVERYTHING)) / len(EVERYTHING)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "grid"])
def test_it_finds_the_best_region_and_is_not_drawn_to_what_fails(tmp_path: Path, kind: str) -> None:
    launches = 18 if kind in {"gp", "staged"} else 30
    journal = Study(tmp_path, kind).run(launches)
    assert len({one.deployment_hash for one in journal}) == len(journal) == launches
    assert max(worth(one.deployment) for one in journal) >= BEST[3]
    failed = sum(one.verdict is Verdict.CAPACITY for one in journal)
    assert failed <= (FAILING + 0.1) * launches


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_after_an_interruption_as_it_would_have(tmp_path: Path, kind: str) -> None:
    launches = 8 if kind == "gp" else 14
    whole = Study(tmp_path, kind).run(launches)
    for cut in (1, 3, launches // 2, launches - 1):
        again = Study(tmp_path, kind, whole[:cut]).run(launches)
        assert [one.deployment for one in again] == [one.deployment for one in whole]


@pytest.mark.parametrize("kind", ["staged", "tpe", "nsgaii", "random", "qmc", "grid"])
def test_it_ends_when_the_whole_space_has_been_tried(tmp_path: Path, kind: str) -> None:
    if kind == "staged":
        journal = Study(tmp_path, "grid").run(SIZE - 1)
        assert len(Study(tmp_path, kind, journal).run(SIZE + 1)) == SIZE
    else:
        assert len(Study(tmp_path, kind).run(SIZE + 1)) == SIZE


def test_the_model_needs_fewer_launches_than_chance(tmp_path: Path) -> None:
    def until_best(kind: str) -> int:
        journal = Study(tmp_path, kind).run(SIZE if kind == "random" else 16)
        reached = [n for n, one in enumerate(journal) if worth(one.deployment) >= BEST[0]]
        return reached[0] if reached else SIZE

    assert until_best("gp") <= 12
