"""Checks of how output is judged: what a kind of quality takes, and what it needs."""

from __future__ import annotations

from pathlib import Path

from sweeper.config.schema import QualityConfig, SweeperConfig
from sweeper.errors import ConfigError

KINDS = ("agreement", "perplexity", "lm_eval", "none")
MIN_TEXT_TOKENS = 512
"""Two windows of text: with one there is no error to tell."""
MIN_TEXT_BYTES = 4000
"""A thousand tokens or so, in several windows."""
_OF_KIND = {
    "text_path": "perplexity",
    "tasks": "lm_eval",
    "tasks_path": "lm_eval",
    "task_limit": "lm_eval",
    "few_shot": "lm_eval",
    "max_task_drop": "lm_eval",
    "python": "lm_eval",
}
"""Settings that mean something to one kind only; left out, they are None or empty."""


def check_quality(cfg: SweeperConfig) -> None:
    """Check `quality.*` against itself and the promises. Raises ConfigError for the first fault."""
    quality = cfg.quality
    _check_kind(quality)
    _check_floors(quality)
    if quality.kind == "lm_eval" and not quality.tasks:
        raise ConfigError(
            "quality=lm_eval has no tasks",
            "name them: quality.tasks=[gsm8k]; your own also need quality.tasks_path=FOLDER",
        )
    if any(not task.strip() for task in quality.tasks):
        raise ConfigError("quality.tasks has an empty name", "for example quality.tasks=[gsm8k]")
    if quality.kind == "perplexity" and quality.text_tokens < MIN_TEXT_TOKENS:
        raise ConfigError(
            f"quality.text_tokens={quality.text_tokens} is too few to tell an error",
            f"set quality.text_tokens={MIN_TEXT_TOKENS} or more",
        )
    if quality.kind == "perplexity" and cfg.select.slo.min_quality is not None:
        raise ConfigError(
            "select.slo.min_quality is a share, and quality=perplexity ranks by nats a token",
            "leave it out, or judge by quality=agreement or quality=lm_eval",
        )


def check_quality_files(cfg: SweeperConfig) -> None:
    """Check that what a new study would read is there. Raises ConfigError for the first fault.

    Not asked of a study that is read again: it has kept what it needs.
    """
    quality = cfg.quality
    for key, given, is_there in (
        ("text_path", quality.text_path, Path.is_file),
        ("tasks_path", quality.tasks_path, Path.is_dir),
        ("python", quality.python, Path.is_file),
    ):
        if given is not None and not is_there(Path(given).expanduser()):
            kind = "folder" if key == "tasks_path" else "file"
            raise ConfigError(
                f"quality.{key}={given}: there is no such {kind}",
                f"give the path of a {kind} (looked up from {Path.cwd()}), or leave it out",
            )
    if quality.text_path is not None:
        _check_text(quality.text_path)


def _check_text(path: str) -> None:
    """A text must be UTF-8, and long enough to be more than a sentence."""
    try:
        size = len(Path(path).expanduser().read_text("utf-8").encode())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"quality.text_path={path} cannot be read: {error}", "name a UTF-8 text file"
        ) from error
    if size < MIN_TEXT_BYTES:
        raise ConfigError(
            f"quality.text_path={path} has {size} bytes of text, too few to tell an error",
            f"name a text of {MIN_TEXT_BYTES} bytes or more, or leave it out for the one that "
            "comes with sweeper",
        )


def _check_kind(quality: QualityConfig) -> None:
    for key, kind in _OF_KIND.items():
        if getattr(quality, key) not in (None, []) and quality.kind != kind:
            shown = getattr(quality, key)
            shown = f"[{','.join(shown)}]" if isinstance(shown, list) else shown
            raise ConfigError(
                f"quality.{key}={shown} means nothing to quality.kind={quality.kind}",
                f"add quality={kind}, or leave quality.{key} out",
            )
    if quality.kind == "none" and quality.max_agreement_drop is not None:
        raise ConfigError(
            f"quality.max_agreement_drop={quality.max_agreement_drop:g} is a floor, and "
            "quality=none measures nothing",
            "measure it: quality=agreement, or leave the floor out",
        )


def _check_floors(quality: QualityConfig) -> None:
    for key in ("max_agreement_drop", "max_task_drop"):
        drop = getattr(quality, key)
        if drop is not None and not 0 <= drop < 1:
            raise ConfigError(
                f"quality.{key}={drop:g} is not a share",
                "give the fall that is still accepted, from 0 to below 1: 0.02 is two in a hundred",
            )
