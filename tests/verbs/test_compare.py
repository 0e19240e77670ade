"""`compare` on studies in a folder and on files of other clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeper.config.schema import SweeperConfig
from sweeper.config.stored import study_text
from sweeper.errors import ConfigError
from sweeper.tracking.journal import Journal
from sweeper.trial.outcome import TrialOutcome
from sweeper.verbs.compare import run
from sweeper.verdicts import Verdict
from tests.factories import outcome, point, study
from tests.report.comparison.sides import MANIFEST

EXTERNAL = Path(__file__).parent.parent / "metrics" / "external" / "data"


def store(folder: Path, name: str, outcomes: list[TrialOutcome]) -> None:
    """A study as a finished search leaves it."""
    root = folder / name
    root.mkdir(parents=True)
    (root / "study.yaml").write_text(study_text(SweeperConfig(study=name), {"name": name}))
    for item in outcomes:
        item.manifest = MANIFEST
        Journal(root / "trials.jsonl").append(item)


@pytest.fixture
def studies(tmp_path: Path) -> str:
    store(tmp_path, "good", study())
    failed = outcome(0, verdict=Verdict.QUALITY_FAIL, points=[point(8, throughput=5)])
    faster = outcome(1, verdict=Verdict.QUALITY_FAIL, points=[point(8, throughput=9)])
    store(tmp_path, "broken", [failed, faster])
    store(tmp_path, "empty", [outcome(0, verdict=Verdict.CAPACITY)])
    return f"studies_dir={tmp_path}"


def test_two_trials(studies: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["a=good/0", "b=good/1", studies]) == 0
    text = capsys.readouterr().out
    assert "a  good/0: trial 0 (baseline)" in text
    assert "b better by 50 %" in text
    assert "verdict: fair except for what was meant to differ: the deployment" in text


def test_json_and_one_level(studies: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["a=good/0", "b=good/1", "load=8", "format=json", studies]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [level["level"] for level in data["levels"]] == ["concurrency 8"]
    assert data["verdict"]["meant"] == ["enable_prefix_caching", "max_num_seqs"]


def test_a_study_means_its_recommendation_and_says_which(
    studies: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["a=good/0", "b=good", studies]) == 0
    assert "b  good: trial 1 (search), the study's recommendation" in capsys.readouterr().out


def test_a_study_that_recommends_nothing_means_its_fastest_trial(
    studies: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["a=good/0", "b=broken", studies]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "trial 1 (search), the study's fastest; it can recommend nothing" in text
    assert "ended QUALITY_FAIL" in text


def test_a_trial_without_points(studies: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["a=good/0", "b=good/3", studies]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "ended CAPACITY" in text
    assert "no load level that both sides have" in text


def test_a_file_of_another_client(studies: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["a=good/0", f"b={EXTERNAL / 'vllm_bench_detailed.json'}", studies]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "result of vllm bench serve" in text
    assert "concurrency 8" in text
    assert "not known to be fair" in text or "unfair" in text


def test_a_result_out_of_several(studies: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = EXTERNAL / "vllm_bench_append.jsonl"
    assert run([f"a={file}#1", f"b={file}", studies, "format=json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["levels_only_a"] == ["concurrency 4"]
    assert data["levels_only_b"] == ["concurrency 8"]


def test_two_files_need_no_studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = EXTERNAL / "guidellm_0_8.json"
    assert run([f"a={file}", f"b={file}"]) == 0
    assert "not known to be fair" in capsys.readouterr().out


BAD = [
    (["b=good/1"], "a= is missing"),
    (["a=good/0"], "b= is missing"),
    (["a=good/0", "b=god/1"], "no study `god`"),
    (["a=good/0", "b=good/99"], "no trial '99'"),
    (["a=good/0", "b=good/x"], "no trial 'x'"),
    (["a=good/0", "b=empty"], "measured nothing"),
    (["a=good/0", "b=missing.json"], r"missing\.json cannot be read"),
    (["a=good/0", "b=good/1", "load=9"], "load=9"),
    (["a=good/0", "b=good/1", "format=xml"], "format=xml"),
    (["a=good/0", "b=good/1", "budget.launches=3"], "budget.launches=3"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_refused_with_a_remedy(studies: str, arguments: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        run([*arguments, studies])
    assert caught.value.remedy
    assert caught.value.exit_code == 2


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text('{"speed": 3}')
    with pytest.raises(ConfigError, match="no known format"):
        run([f"a={odd}", f"b={odd}"])
