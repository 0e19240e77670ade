"""The replay engine: a row in the place of a launch, on the table's own clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweeper.config.schema import EngineConfig
from sweeper.engine.levels import LevelAsk
from sweeper.engine.protocol import LaunchFailure, LaunchRequest, Tabled
from sweeper.engine.registry import create
from sweeper.errors import ConfigError
from sweeper.verdicts import Phase, Verdict
from tests.engine.replay.tables import deployment_line, write_lines

FAILED = {
    "deployment": {"max_num_seqs": 64},
    "verdict": "CAPACITY",
    "cause": "no room",
    "remedy": "fewer",
    "phase": "start",
    "learnt": {"rule": "no_kv_memory"},
    "virtual_s": 33.0,
}
UNTIMED = {
    "deployment": {"max_num_seqs": 16},
    "levels": [{"concurrency": 8, "metrics": {"output_tokens_per_s": 100.0, "e2e_p95_ms": 10.0}}],
}


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    lines = [deployment_line({"max_num_seqs": 8}), FAILED, UNTIMED]
    path = write_lines(tmp_path / "t.jsonl", lines)
    return create(EngineConfig(name="replay", table=str(path)), cache_dir=tmp_path)


def asked(tmp_path: Path, **parameters: Any) -> LaunchRequest:
    return LaunchRequest("m", parameters, tmp_path, "name", 60.0, "token")


def level(streams: int) -> LevelAsk:
    return LevelAsk("closed", streams, None, 20, 100.0, 50.0, 1)


def test_levels_are_the_tables_and_cost_what_they_took(engine: Any, tmp_path: Path) -> None:
    with engine.serve(asked(tmp_path, max_num_seqs=8)) as server:
        assert server.answer is not None and server.virtual_s is not None
        assert server.virtual_s() == 30.0
        answer = server.answer(level(8))
        assert answer.metrics["output_tokens_per_s"] == 800.0
        assert (answer.virtual_s, answer.reasons) == (10.0, ())
        assert server.virtual_s() == 40.0
        missing = server.answer(level(64))
        assert not missing.metrics and "no figures of this load level" in missing.reasons[0]
        assert server.virtual_s() == 40.0


def test_what_the_table_does_not_time_is_stated_or_follows(engine: Any, tmp_path: Path) -> None:
    with engine.serve(asked(tmp_path, max_num_seqs=16)) as server:
        assert server.virtual_s() == engine.options.start_s == 60.0
        assert server.answer(level(8)).virtual_s == pytest.approx(20 * 50 / 100)


def test_a_failed_row_fails_in_the_same_way_and_costs_the_same(engine: Any, tmp_path: Path) -> None:
    with pytest.raises(LaunchFailure) as failed, engine.serve(asked(tmp_path, max_num_seqs=64)):
        pass
    found = failed.value.diagnosis
    assert (found.verdict, found.phase, found.cause) == (Verdict.CAPACITY, Phase.START, "no room")
    assert found.learnt == {"rule": "no_kv_memory"}
    assert failed.value.virtual_s == 33.0


def test_what_is_not_in_the_table_cannot_be_launched(engine: Any, tmp_path: Path) -> None:
    with pytest.raises(LaunchFailure) as failed, engine.serve(asked(tmp_path, max_num_seqs=9)):
        pass
    assert failed.value.diagnosis.verdict is Verdict.INFEASIBLE_CONFIG
    assert failed.value.virtual_s == 0.0


def test_it_is_known_by_its_table(engine: Any) -> None:
    assert isinstance(engine, Tabled)
    assert len(engine.table.rows) == 3


def test_another_content_is_another_table(engine: Any, tmp_path: Path) -> None:
    facts = engine.facts()
    assert facts.predicted and "predicted" in facts.details["source"]
    line = {"table": {"predicted": False, "model": "m7", "versions": {"vllm": "0.33"}}}
    path = write_lines(tmp_path / "u.jsonl", [line, deployment_line({"max_num_seqs": 8})])
    other = create(EngineConfig(name="replay", table=str(path)), cache_dir=tmp_path).facts()
    assert other.version != facts.version
    assert not other.predicted
    assert other.details["source"] == "replayed from u.jsonl: measured elsewhere with vllm 0.33"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch": "odd"}, "batch=odd"),
        ({"start_s": -1.0}, "negative"),
        ({"grup": "x"}, "did you mean"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    path = write_lines(tmp_path / "t.jsonl", [deployment_line({"max_num_seqs": 8})])
    with pytest.raises(ConfigError) as refused:
        create(EngineConfig(name="replay", table=str(path), options=options), cache_dir=tmp_path)
    assert said in str(refused.value)
