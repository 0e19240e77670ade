"""Conditions that outcomes have in common are held once, and read as before."""

from __future__ import annotations

from sweeper.search.sharing import share_conditions
from tests.factories import outcome


def test_equal_conditions_become_the_same_object_and_others_stay() -> None:
    journal = [
        outcome(
            number, manifest={"engine": {"name": "vllm"}, "devices": number, "n": {"x": number}}
        )
        for number in range(3)
    ]
    told = [one.to_dict() for one in journal]
    share_conditions(journal[:2])
    share_conditions(journal[2:], journal[1])
    assert [one.to_dict() for one in journal] == told
    assert journal[2].manifest["engine"] is journal[0].manifest["engine"]
    assert journal[2].manifest["n"] is not journal[1].manifest["n"]
