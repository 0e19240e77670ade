"""Where a study stands, in words."""

from __future__ import annotations

from sweeper.config.schema import BudgetConfig, SweeperConfig
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import front_mask
from sweeper.search.budget import Account
from sweeper.search.progress import Watch, outlook_text
from sweeper.verdicts import Verdict
from tests.factories import outcome, point, study
from tests.search.test_standing import standing, trial


def test_the_front_so_far_is_the_front() -> None:
    outcomes = study()
    cfg = SweeperConfig(budget=BudgetConfig(launches=8))
    for upto in range(1, len(outcomes) + 1):
        watch, account = Watch(cfg), Account(None, 1)
        watch.update(outcomes[:upto])
        account.update(outcomes[:upto])
        told = watch.now(account, standing())
        assert told.front_size == int(front_mask(points_frame(outcomes[:upto])).sum())
    assert told.failures == {"CAPACITY": 1, "INFEASIBLE_CONFIG": 1}
    assert told.best == "trial 1 at concurrency 32: 320.0 tokens/s (1.78x the baseline)"
    assert told.eta_s == 4 * 52.0 and told.eta_low_s == told.eta_high_s == told.eta_s


def test_a_launch_that_was_cut_is_neither_the_best_nor_on_the_front() -> None:
    fast = outcome(1, deployment={"x": 1}, points=[point(8, throughput=900, e2e_p95_ms=1)])
    fast.partial = "cut"
    watch = Watch(SweeperConfig())
    watch.update([outcome(0), fast])
    assert watch.best.startswith("trial 0")
    assert not front_mask(points_frame([fast])).any()


def test_the_outlook_says_what_an_hour_buys_or_that_nobody_knows() -> None:
    def text(*trials: object) -> str:
        outcomes = [trial(0, 1.0, timings_s={"total": 360.0}), *trials]
        account = Account(None, 1)
        account.update(outcomes)  # type: ignore[arg-type]
        return outlook_text(account, standing(*outcomes))  # type: ignore[arg-type]

    def more(count: int, factor: float, seconds: float = 360.0) -> list[object]:
        return [
            trial(n + 1, factor**n, timings_s={"total": seconds}, verdict=Verdict.OK)
            for n in range(count)
        ]

    assert outlook_text(Account(None, 1), standing()) == ""
    assert "about 10 launches) would add is not known before 8" in text()
    assert text(*more(12, 1.0)) == (
        "one more hour (about 10 launches) would probably add nothing; the last 12 launches added "
        "nothing"
    )
    assert text(*more(12, 1.0, 6.0)).startswith("26 more launches would probably add nothing")
    growing = text(*more(12, 1.05))
    assert "% throughput at the same latency (" in growing and "added nothing" not in growing
