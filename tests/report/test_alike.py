"""One line for deployments that came to the same figures."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sweeper.report.alike import merged, with_alike

METRICS = ("output_tokens_per_s", "e2e_p95_ms")


def row(
    trial: int, speed: float = 10.0, level: str = "concurrency 4", **deployment: Any
) -> dict[str, Any]:
    return {
        "trial": trial,
        "level": level,
        "deployment": deployment,
        "output_tokens_per_s": speed,
        "e2e_p95_ms": 100.0,
    }


def test_the_one_with_the_fewest_settings_stands_for_all() -> None:
    rows = [row(1, max_num_seqs=8, block_size=16), row(2, max_num_seqs=8), row(3, block_size=16)]
    shown = merged(rows, METRICS)
    assert [(one["trial"], one["alike"]) for one in shown] == [(2, 2)]
    assert with_alike(shown[0]) == "max_num_seqs=8 (and 2 with the same figures)"


def test_the_recommended_is_never_hidden_behind_another() -> None:
    rows = [row(1, max_num_seqs=8, block_size=16), row(2, max_num_seqs=8)]
    assert merged(rows, METRICS, (1, "concurrency 4"))[0]["trial"] == 1


def test_other_loads_and_other_figures_stand_for_themselves() -> None:
    rows = [row(1), row(2, level="concurrency 8"), row(3, 10.000001), row(4)]
    assert [(one["trial"], one["alike"]) for one in merged(rows, METRICS)] == [
        (1, 1),
        (2, 0),
        (3, 0),
    ]


def test_what_is_on_the_front_by_noise_only_is_not_merged_with_it() -> None:
    rows = [{**row(1), "tie": False}, {**row(2), "tie": True}]
    assert len(merged(rows, METRICS)) == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=20))
def test_nothing_is_lost_and_the_order_stays(drawn: list[tuple[int, int]]) -> None:
    rows = [row(n, float(speed), f"concurrency {load}") for n, (speed, load) in enumerate(drawn)]
    shown = merged(rows, METRICS)
    assert sum(1 + one["alike"] for one in shown) == len(rows)
    trials = [one["trial"] for one in shown]
    assert trials == sorted(trials)
