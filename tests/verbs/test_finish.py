"""What a study's user reads at its end, from made-up outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sweeper.config.compose import compose
from sweeper.errors import NoFeasibleTrialError
from sweeper.search.stopping import EXHAUSTED
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.verbs import pareto
from sweeper.verbs.finish import finish
from sweeper.verbs.running import prepare
from sweeper.verdicts import Verdict
from tests.factories import outcome, point
from tests.report.traded import traded

End = Callable[..., int]


class SilentTracker:
    """Takes whatever it is told, and says nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


@pytest.fixture
def end(tmp_path: Path) -> End:
    paths = StudyPaths(tmp_path, "s")
    paths.create()

    def run(outcomes: list[TrialOutcome], *settings: str, ended: str = "budget used") -> int:
        given = ["engine=mock", "hardware=h100_80gb", "model=qwen7b", "space=gpu", "tracking=none"]
        setup = prepare(compose([*given, *settings], device_kind="cpu"), lambda _: None)
        paths.study_yaml.write_text("")
        tracker: Any = SilentTracker()
        return finish(setup, paths, outcomes, tracker=tracker, ended=ended, listener=lambda _: None)

    return run


def full(number: int, **learnt: Any) -> TrialOutcome:
    return outcome(
        number, deployment={"max_num_seqs": number}, verdict=Verdict.CAPACITY,
        learnt={"rule": "kv_too_small", **learnt},
    )  # fmt: skip


@pytest.mark.parametrize("ended", ["budget used", f"{EXHAUSTED} or is refused"])
def test_nothing_is_promised_of_a_space_that_is_used_up(
    end: End, capsys: pytest.CaptureFixture[str], ended: str
) -> None:
    assert end([outcome(0)], ended=ended) == 0
    assert ("outlook" in capsys.readouterr().out) is (ended == "budget used")


def test_only_the_default_works(end: End, capsys: pytest.CaptureFixture[str]) -> None:
    assert end([outcome(0), full(1), full(2)]) == 0
    shown = capsys.readouterr().out
    assert "No deployment but the default worked: all 2 others failed." in shown
    assert "kv too small" in shown


def test_a_study_with_more_than_the_default_is_not_burdened_with_its_failures(
    end: End, capsys: pytest.CaptureFixture[str]
) -> None:
    better = outcome(1, deployment={"max_num_seqs": 8}, points=[point(throughput=300.0)])
    assert end([outcome(0), better, full(2)]) == 0
    assert "kv too small" not in capsys.readouterr().out


def test_what_quantization_bought_is_told_at_the_end_and_by_pareto(
    end: End, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [traded(0), traded(1, deployment={"quantization": "fp8_per_tensor"}, speed=1.5)]
    assert end(outcomes) == 0
    title, line = "what quantization buys, and what it costs", "270 x1.50"
    at_the_end = capsys.readouterr().out
    assert title in at_the_end
    assert line in at_the_end
    opened = SimpleNamespace(
        outcomes=outcomes, cfg=compose([]), paths=SimpleNamespace(name="traded")
    )
    monkeypatch.setattr("sweeper.verbs.pareto.open_study", lambda _: opened)
    for form, told in (("table", True), ("json", False)):
        pareto.run([f"format={form}"])
        assert (title in capsys.readouterr().out) is told


def test_nothing_feasible_names_the_nearest_miss(end: End, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    with pytest.raises(NoFeasibleTrialError) as nothing:
        end([full(1, needed_kv_gib=9.0, kv_cache_memory_gib=8.0), full(2)])
    assert "1 GiB of KV cache missing (9 needed, 8 there)" in " ".join(str(nothing.value).split())
    assert nothing.value.exit_code == 1


def test_a_promise_that_nothing_keeps_is_a_cause_too(
    end: End, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end([outcome(0), full(1)], "select.slo.e2e_p95_ms=800") == 1
    words = " ".join(capsys.readouterr().out.split())
    assert "SLO: E2E P95 ms" in words
    assert "200 ms over" in words
