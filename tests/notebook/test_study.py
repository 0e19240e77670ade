"""Studies opened from Python: by name or folder, finished or running, whole or in part."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import sweeper
from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.errors import ConfigError, JournalError, NoFeasibleTrialError, SweeperError
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.paths import StudyPaths
from sweeper.verdicts import Verdict
from tests.factories import outcome
from tests.factories import study as outcomes_of_a_study
from tests.notebook.conftest import write_study

ROOT = Path(__file__).resolve().parents[2]


def test_importing_the_package_costs_nothing_until_a_study_is_asked_for() -> None:
    script = (
        "import sys, sweeper; assert 'load_study' in dir(sweeper); "
        "before = set(sys.modules); sweeper.load_study; "
        "print('pandas' in before, 'sweeper.notebook.study' in sys.modules, "
        "*(m for m in ('torch', 'mlflow', 'optuna', 'plotly', 'hydra') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_a_name_that_is_not_offered_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="lod_study"):
        sweeper.lod_study  # type: ignore[attr-defined]  # noqa: B018


def test_a_study_is_found_by_name_and_by_folder(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths.studies_dir.parent)
    for given in ("mine", "studies/mine", "studies/mine/", paths.root, str(paths.root)):
        assert sweeper.load_study(given).name == "mine"
    monkeypatch.chdir(paths.root)
    assert sweeper.load_study(".").folder == str(paths.root)
    monkeypatch.chdir(paths.studies_dir)
    assert sweeper.load_study("mine").name == "mine"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("mime", "did you mean mine?"),
        ("", "studies there: mine"),
        ("studies/mime", "did you mean mine?"),
        ("./studies", "has neither study.yaml nor trials.jsonl"),
        ("elsewhere/mine", "no study is in"),
        ("studies/mine/trials.jsonl", "load_study('studies/mine')"),
        ("größe", "studies there: mine"),
    ],
)
def test_what_is_no_study_is_named_with_a_way_out(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, given: str, told: str
) -> None:
    monkeypatch.chdir(paths.studies_dir.parent)
    with pytest.raises(ConfigError) as caught:
        sweeper.load_study(given)
    assert told in str(caught.value)


def test_a_study_tells_what_it_is(paths: StudyPaths) -> None:
    study = sweeper.load_study(paths.root)
    assert repr(study) == "<study mine: 5 trials, 4 launches, 9 points, measured>"
    assert study.source == "measured" and not study.is_running
    with StudyLock(paths.lock):
        assert study.is_running and ", running>" in repr(study)


def test_points_are_those_of_the_command_and_the_front_is_a_part_of_them(
    paths: StudyPaths,
) -> None:
    study = sweeper.load_study(paths.root)
    pd.testing.assert_frame_equal(study.points, points_frame(outcomes_of_a_study()))
    told = study.front[["trial", "level"]].to_numpy().tolist()
    assert told == [
        [1, "concurrency 1"],
        [2, "concurrency 1"],
        [1, "concurrency 8"],
        [1, "concurrency 32"],
    ]


def test_the_choice_is_that_of_the_command(paths: StudyPaths) -> None:
    study = sweeper.load_study(paths.root)
    own = SelectConfig(slo=SloConfig(e2e_p95_ms=900.0))
    assert study.recommend() == recommend(points_frame(study.outcomes), own)
    assert study.recommend().point["trial"] == 1
    fastest = study.recommend(slo={"e2e_p95_ms": 900.0}, prefer="latency")
    assert (fastest.trial, fastest.level) == (2, "concurrency 1")
    assert study.recommend(slo={}).slo == {}
    assert study.recommend(trial=2).trial == 2
    assert study.recommend(slo={"min_output_tokens_per_s": 300}).trial == 1
    assert study.recommend(prefer="cost", price_per_hour=2.0).point["output_tokens_per_s"] == 150
    missed = study.recommend(slo={"ttft_p95_ms": 1.0})
    assert not missed.keeps_slo and missed.missed["ttft_p95_ms"] == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"slo": {"ttft_p95": 5}}, "did you mean ttft_p95_ms?"),
        ({"slo": {"ttft_p95_ms": -5}}, "not a positive number"),
        ({"slo": {"ttft_p95_ms": "500"}}, "not a positive number"),
        ({"slo": {"ttft_p95_ms": True}}, "not a positive number"),
        ({"slo": {"min_quality": 95}}, "not a share of 1"),
        ({"price_per_hour": 0}, "price_per_hour=0 is not a positive number"),
        ({"prefer": "sped"}, "select.prefer=sped is not known"),
        ({"trial": 99}, "has no trial 99"),
    ],
)
def test_wrong_questions_are_answered_with_a_remedy(
    paths: StudyPaths, asked: dict[str, object], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        sweeper.load_study(paths.root).recommend(**asked)  # type: ignore[arg-type]
    assert told in str(caught.value) and caught.value.remedy


def test_a_launch_that_confirms_stands_for_the_trial_it_repeats(tmp_path: Path) -> None:
    again = outcome(5, kind="confirm", deployment={"max_num_seqs": 64}, repeats=1)
    made = write_study(tmp_path / "mine", [*outcomes_of_a_study(), again])
    assert sweeper.load_study(made.root).recommend(trial=5).trial == 1


def test_an_earlier_versions_throughput_without_a_promise_is_the_knee(tmp_path: Path) -> None:
    """It was written where nobody had said anything, and meant the knee of the front."""
    old = {"select": {"slo": {"ttft_p95_ms": None}, "prefer": "throughput"}}
    made = write_study(tmp_path / "mine", outcomes_of_a_study(), old)
    study = sweeper.load_study(made.root)
    assert study.recommend() == study.recommend(prefer="balanced")
    assert study.recommend(prefer="throughput").level == "concurrency 32"


def test_what_the_user_adds_to_a_frame_stays_and_changes_no_choice(paths: StudyPaths) -> None:
    study = sweeper.load_study(paths.root)
    study.points["output_tokens_per_s_per_gpu"] = 1.0
    study.points["mine"] = 2
    assert "mine" in study.points.columns
    assert study.recommend().point["output_tokens_per_s_per_gpu"] == 150


def test_the_manifest_is_a_copy_of_the_last_attempts(tmp_path: Path) -> None:
    first = outcome(0, verdict=Verdict.INFRA, manifest={"engine": {"name": "vllm"}})
    again = outcome(0, attempt=2, manifest={"engine": {"name": "vllm", "version": "0.32.0"}})
    study = sweeper.load_study(write_study(tmp_path / "mine", [first, again]).root)
    study.manifest(0)["engine"]["version"] = "changed"
    assert study.manifest(0)["engine"]["version"] == "0.32.0"
    with pytest.raises(ConfigError, match="trials are 0 to 0"):
        study.manifest(1)


def test_a_line_that_is_being_written_is_left_out(paths: StudyPaths) -> None:
    with paths.trials_jsonl.open("a") as file:
        file.write('{"number": 5, "kind": "sea')
    assert len(sweeper.load_study(paths.root).trials) == 5


def test_a_damaged_journal_is_refused_by_its_line(paths: StudyPaths) -> None:
    lines = paths.trials_jsonl.read_text().splitlines()
    paths.trials_jsonl.write_text("\n".join([lines[0], "{broken", *lines[1:]]) + "\n")
    with pytest.raises(JournalError, match="line 2"):
        sweeper.load_study(paths.root)


def test_a_study_without_a_trial_yet_has_empty_frames_of_the_same_columns(tmp_path: Path) -> None:
    full = sweeper.load_study(write_study(tmp_path / "full", outcomes_of_a_study()).root)
    empty = sweeper.load_study(write_study(tmp_path / "empty", [], {"model": {}}).root)
    assert repr(empty) == "<study empty: 0 trials, 0 launches, 0 points, empty>"
    for name in ("trials", "launches", "requests"):
        frame = getattr(empty, name)
        own = [c for c in getattr(full, name).columns if not c.startswith("param.")]
        assert len(frame) == 0 and list(frame.columns) == own
    assert empty.front.empty
    with pytest.raises(NoFeasibleTrialError):
        empty.recommend()
    with pytest.raises(ConfigError, match="no trial yet"):
        empty.manifest(0)


def test_a_journal_alone_is_a_study_too(paths: StudyPaths) -> None:
    paths.study_yaml.unlink()
    study = sweeper.load_study(paths.root)
    assert study.config == {} and study.recommend().slo == {}


def test_a_configuration_of_another_version_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    config = {"select": {"slo": {"e2e_p95_ms": 900, "itl_p95_ms": 5}, "prefer": "latency"}}
    made = write_study(tmp_path / "mine", outcomes_of_a_study(), {**config, "unheard_of": 1})
    assert sweeper.load_study(made.root).recommend().slo == {"e2e_p95_ms": 900.0}


@pytest.mark.parametrize(
    ("engine", "source"),
    [
        ({"name": "vllm", "predicted": False}, "measured"),
        ({"name": "simulate", "predicted": True}, "predicted"),
        ({"name": "replay", "predicted": False}, "replayed"),
        ({"name": "replay", "predicted": True}, "predicted"),
    ],
)
def test_predicted_and_replayed_studies_say_so_everywhere(
    tmp_path: Path, engine: dict[str, object], source: str
) -> None:
    outcomes = [outcome(0, manifest={"engine": engine})]
    study = sweeper.load_study(write_study(tmp_path / "mine", outcomes).root)
    assert study.source == source and source in repr(study)
    assert set(study.trials["source"]) == set(study.launches["source"]) == {source}
    title = study.plots.frontier().layout.title.text or ""
    assert (source in title) == (source != "measured")


def test_a_journal_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """It was written before attempts, partial launches and paired qualities."""
    shutil.copytree(ROOT / "tests/data/study-of-0.1", tmp_path / "earlier")
    study = sweeper.load_study("earlier", studies_dir=tmp_path)
    assert len(study.trials) == 7 and len(study.points) == 18 and study.requests.empty
    assert study.recommend().trial == 1
    assert study.manifest(1)["engine"]["name"] == "vllm"


def test_nothing_is_written_by_looking(paths: StudyPaths) -> None:
    def there() -> list[str]:
        return sorted(str(path) for path in paths.root.rglob("*"))

    before = there()
    study = sweeper.load_study(paths.root)
    json.dumps([len(study.trials), len(study.requests), study.is_running])
    study.plots.frontier()
    assert there() == before


def test_a_figure_without_anything_to_draw_says_why(tmp_path: Path) -> None:
    study = sweeper.load_study(write_study(tmp_path / "mine", [outcome(0)]).root)
    with pytest.raises(SweeperError, match=r"nothing to draw for plots\.trade"):
        study.plots.trade()


def test_a_view_or_metric_that_is_not_there_gets_the_nearest(paths: StudyPaths) -> None:
    plots = sweeper.load_study(paths.root).plots
    with pytest.raises(ConfigError, match="did you mean ttft"):
        plots.frontier(view="tfft")
    with pytest.raises(ConfigError, match="did you mean tpot_p95_ms"):
        plots.ladder(latency="tpot_p96_ms")
    assert plots.frontier(view="ttft") and plots.ladder(latency="tpot_p95_ms")


def test_every_figure_of_the_report_is_offered(paths: StudyPaths) -> None:
    import plotly.graph_objects as go

    plots = sweeper.load_study(paths.root).plots
    for made in (plots.frontier(), plots.ladder(), plots.timeline(), plots.parallel()):
        assert isinstance(made, go.Figure)
    other = sweeper.load_study(paths.root).recommend(slo={"e2e_p95_ms": 380})
    assert isinstance(plots.frontier(other), go.Figure)
