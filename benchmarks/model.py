"""The embedded model, for benchmarks that need a tokenizer or a server."""

from __future__ import annotations

import sys
from pathlib import Path

from sweeper.config.schema import SweeperConfig
from sweeper.models.cache import cache_dir
from sweeper.models.embedded import SMOLLM2, materialise


def embedded_model() -> Path:
    """Its folder in the cache, made there if it is missing."""
    folder, _ = materialise(
        SMOLLM2, cache_dir(SweeperConfig()), python=sys.executable, progress=_tell
    )
    return folder


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
