"""`study.yaml`: written, read back, and changed by overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.config.stored import StoredStudy, read_study, restore, study_text
from sweeper.errors import ConfigError


@pytest.fixture
def stored(tmp_path: Path) -> StoredStudy:
    path = tmp_path / "study.yaml"
    path.write_text(study_text(compose([]), {"model": {"name": "smollm2"}}))
    return read_study(path)


def test_a_study_is_read_back_as_it_was(stored: StoredStudy) -> None:
    assert restore(stored) == compose([])
    assert stored.identity == {"model": {"name": "smollm2"}}


def test_overrides_win(stored: StoredStudy) -> None:
    cfg = restore(stored, ["budget.launches=40", "select.slo.ttft_p95_ms=500"])
    assert (cfg.budget.launches, cfg.select.slo.ttft_p95_ms) == (40, 500)


@pytest.mark.parametrize(
    ("override", "word"),
    [
        ("budget.launchs=4", "launches"),
        ("budget.launches=many", "launches"),
        ("budget.launches=0", "launches"),
        ("space=gpu", "space"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_wrong_override_is_named(stored: StoredStudy, override: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        restore(stored, [override])


@pytest.mark.parametrize("text", ["", "identity: 1", "config: [", "config: {}\n", "\x00"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"study\.yaml"):
        read_study(path)


def test_a_setting_of_another_version_is_no_traceback(stored: StoredStudy) -> None:
    other = StoredStudy({**stored.config, "unknown_group": {"a": 1}}, stored.identity)
    with pytest.raises(ConfigError):
        restore(other)


def test_the_preference_of_an_earlier_version_means_what_it_meant(stored: StoredStudy) -> None:
    """It wrote throughput where nobody had said anything, and took the knee without an SLO."""
    few = dict.fromkeys(("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms", "min_quality"))

    def select(prefer: str, slo: dict[str, None]) -> str:
        changed = {**stored.config, "select": {"name": "default", "slo": slo, "prefer": prefer}}
        return restore(StoredStudy(changed, stored.identity)).select.prefer

    assert select("throughput", few) == "auto"
    assert select("latency", few) == "latency"
    assert select("throughput", stored.config["select"]["slo"]) == "throughput"
