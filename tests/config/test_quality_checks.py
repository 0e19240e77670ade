"""Wrong settings of quality: each has one message, which names the key and the way out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sweeper.config.checks import check
from sweeper.config.compose import compose
from sweeper.config.quality_checks import check_quality_files
from sweeper.config.schema import QualityConfig, SweeperConfig
from sweeper.config.stored import StoredStudy, restore
from sweeper.errors import ConfigError

LM_EVAL = {"kind": "lm_eval", "tasks": ["mine"]}


def refused(quality: dict[str, Any], min_quality: float | None = None) -> ConfigError:
    cfg = SweeperConfig(quality=QualityConfig(**quality))
    cfg.select.slo.min_quality = min_quality
    with pytest.raises(ConfigError) as caught:
        check(cfg)
        check_quality_files(cfg)
    return caught.value


@pytest.mark.parametrize(
    ("quality", "named", "remedy"),
    [
        ({"kind": "perplexitty"}, "quality.kind=perplexitty", "perplexity"),
        ({"tasks": ["gsm8k"]}, "quality.tasks=[gsm8k]", "quality=lm_eval"),
        ({"kind": "lm_eval"}, "no tasks", "quality.tasks=[gsm8k]"),
        ({"kind": "lm_eval", "tasks": [""]}, "empty name", "gsm8k"),
        ({"text_path": "a.txt"}, "quality.text_path=a.txt", "quality=perplexity"),
        ({"kind": "perplexity", "text_path": "no.txt"}, "no such file", "path of a file"),
        ({"kind": "perplexity", "text_tokens": 100}, "too few", "512"),
        ({"kind": "perplexity", "text_tokens": -1}, "quality.text_tokens=-1", "1 or more"),
        ({"max_agreement_drop": 2.0}, "not a share", "two in a hundred"),
        ({"max_agreement_drop": -0.1}, "not a share", "0.02"),
        ({"kind": "none", "max_agreement_drop": 0.1}, "measures nothing", "quality=agreement"),
        ({"max_task_drop": 0.1}, "quality.max_task_drop=0.1", "quality=lm_eval"),
        ({"few_shot": -1}, "quality.few_shot=-1", "0 or more"),
        ({**LM_EVAL, "task_limit": 0}, "quality.task_limit=0", "1 or more"),
        ({**LM_EVAL, "tasks_path": "no/such"}, "no such folder", "path of a folder"),
        ({**LM_EVAL, "python": "no/such"}, "no such file", "path of a file"),
        ({"written_tokens": -1}, "quality.written_tokens=-1", "0 or more"),
        ({"max_loglik_drop_nats": -1.0}, "quality.max_loglik_drop_nats", "1 or more"),
        ({"tasks_timeout_s": 0.0}, "quality.tasks_timeout_s", "1 or more"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_what_is_wrong_is_named_once_with_a_remedy(
    quality: dict[str, Any], named: str, remedy: str
) -> None:
    fault = refused(quality)
    assert named in fault.message
    assert remedy in fault.remedy
    assert "\n" not in fault.message


def test_a_share_cannot_be_promised_of_nats() -> None:
    fault = refused({"kind": "perplexity"}, min_quality=0.9)
    assert "min_quality" in fault.message and "leave it out" in fault.remedy


def test_tasks_with_their_folder_are_taken(tmp_path: Path) -> None:
    cfg = SweeperConfig(quality=QualityConfig(**LM_EVAL, tasks_path=str(tmp_path)))
    check(cfg)
    check_quality_files(cfg)


@pytest.mark.parametrize(
    ("content", "named"), [(b"\xff\xfe\x00", "cannot be read"), (b"short", "5 bytes of text")]
)
def test_a_text_that_cannot_judge_is_refused_before_anything_starts(
    tmp_path: Path, content: bytes, named: str
) -> None:
    text = tmp_path / "mine.txt"
    text.write_bytes(content)
    assert named in refused({"kind": "perplexity", "text_path": str(text)}).message


def test_a_study_that_is_read_again_needs_its_text_no_more(tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("words " * 1000)
    cfg = compose(["quality=perplexity", f"quality.text_path={text}"], device_kind="cpu")
    assert (cfg.quality.kind, cfg.quality.text_tokens) == ("perplexity", 4096)
    text.unlink()
    assert restore(StoredStudy(asdict(cfg), {})).quality.text_path == str(text)
