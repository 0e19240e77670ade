"""Optimization sweep and autotuning engine for LLM serving.

From Python, `sweeper.load_study(name)` opens a study as pandas frames: `sweeper.notebook.study`.

Import cost is part of the contract: nothing heavy is imported here, and what is offered is found
when it is asked for. `__init__.pyi` tells type checkers and editors the same names.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_OFFERED = {
    "load_study": "sweeper.notebook.study",
    "Study": "sweeper.notebook.study",
}
"""Name → the module that has it."""


def __getattr__(name: str) -> object:
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_OFFERED[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_OFFERED])
