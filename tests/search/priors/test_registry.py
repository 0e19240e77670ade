from __future__ import annotations

from pathlib import Path

from sweeper.config.search_checks import PRIOR_KINDS
from sweeper.hardware.facts import HardwareFacts
from sweeper.search.priors.lead import guide_of
from sweeper.search.priors.registry import PRIORS, create, kinds_of
from sweeper.search.priors.trust import TRUST
from tests.search.priors.made import config, measured, setup


def test_every_kind_is_known_everywhere() -> None:
    assert tuple(PRIORS) == PRIOR_KINDS == tuple(TRUST)


def test_studies_join_in_where_they_are_named() -> None:
    assert kinds_of(config(kinds=["published", "roofline"]).prior) == ["roofline", "published"]
    assert kinds_of(config(kinds=["roofline"], studies=["x"]).prior) == ["studies", "roofline"]


def test_a_kind_that_has_nothing_to_say_is_left_out_and_why_is_said(tmp_path: Path) -> None:
    heard: list[str] = []
    cpu = HardwareFacts("cpu", "CPU", 1, memory_gib=16.0, bandwidth_gbs=20, tflops_bf16=0.5)
    made = setup(tmp_path, config(kinds=["simulator", "roofline"]), hardware=cpu)
    assert [prior.kind for prior in create(made, heard.append)] == ["roofline"]
    assert heard[0].startswith("prior simulator is left out: it models GPUs only")


def test_a_guide_knows_what_the_journal_knows(tmp_path: Path) -> None:
    made = setup(tmp_path, config(kinds=["roofline"]))
    guide = guide_of(made, made.space, [measured(0, {})], lambda _: False, print)
    assert guide is not None and guide.seeds(1)
    assert guide.weights == {"roofline": 0.5}
    assert guide_of(setup(tmp_path), made.space, [], lambda _: False, print) is None
