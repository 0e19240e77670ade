"""Names of studies."""

from __future__ import annotations

import re

from sweeper.config.schema import SweeperConfig

MAX_STUDY_NAME = 100
"""Characters; a study's name is a folder's name."""


def study_name(cfg: SweeperConfig) -> str:
    """The study's name: given, or derived as ``{model}-{space}-{engine}``."""
    if cfg.study is not None:
        return cfg.study
    parts = (cfg.model.name, cfg.space.name, cfg.engine.name)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip("-.")[:MAX_STUDY_NAME]


def study_name_fault(name: str) -> str | None:
    """Why `name` cannot name a study, or None if it can."""
    if not name.strip():
        return "is empty"
    if "/" in name or "\\" in name:
        return "has a slash"
    if name.startswith((".", "-")):
        return f"begins with '{name[0]}'"
    if len(name) > MAX_STUDY_NAME:
        return f"has {len(name)} characters, more than {MAX_STUDY_NAME}"
    odd = re.search(r"[^A-Za-z0-9._-]", name)
    return f"has the character {odd.group()!r}" if odd else None
