from __future__ import annotations

import pytest

from sweeper.config.schema import ExportConfig
from sweeper.errors import ConfigError
from sweeper.export.bundle import ExportInput
from sweeper.export.registry import TARGETS, render_all, renderer, resolve


def test_all_means_every_target_once() -> None:
    assert resolve(["all", "vllm"]) == list(TARGETS)


def test_unknown_target_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean vllm"):
        resolve(["vlm"])


@pytest.mark.parametrize("name", list(TARGETS))
def test_every_target_renders(name: str, source: ExportInput) -> None:
    assert renderer(name)(source)


def test_every_export_carries_its_provenance(source: ExportInput) -> None:
    files = render_all(["shell"], source)
    assert set(files) == {"vllm.yaml", "start.sh", "recommendation.json", "README.md"}


def test_the_readme_tells_what_each_file_is(source: ExportInput) -> None:
    files = render_all(["all"], source)
    readme = files["README.md"].text
    assert {name for name in files if f"| `{name}` |" in readme} == set(files) - {
        "README.md",
        "recommendation.json",
    }
    few = render_all(["vllm"], source)["README.md"].text
    assert "start.sh" not in few
    assert "k8s.yaml" not in few


def test_the_files_of_a_finished_study_are_targets() -> None:
    assert resolve(ExportConfig().targets) == ["vllm", "shell", "compose", "k8s"]
