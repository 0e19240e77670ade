from __future__ import annotations

import pytest

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
    files = render_all(["vllm"], source)
    assert set(files) == {"vllm.yaml", "start.sh", "recommendation.json", "README.md"}
