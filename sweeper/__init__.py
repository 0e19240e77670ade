"""Optimization sweep and autotuning engine for LLM serving.

Import cost is part of the contract: nothing heavy is imported here.
"""

from __future__ import annotations

__version__ = "0.1.0"
