from __future__ import annotations

import pytest

from sweeper.errors import ConfigError
from sweeper.export.bundle import ExportInput, is_secret
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


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("api_key", True),
        ("api-key", True),
        ("HF_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("DB_PASSWORD", True),
        ("max_num_batched_tokens", False),
        ("num_speculative_tokens", False),
        ("tokenizer", False),
        ("kv_cache_dtype", False),
        ("max_num_seqs", False),
    ],
)
def test_secrets_are_known_by_their_names(name: str, secret: bool) -> None:
    assert is_secret(name) is secret
