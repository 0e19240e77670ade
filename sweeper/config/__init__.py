"""Configuration: schema, composition, checks, identity."""

from __future__ import annotations

from sweeper.config.document import to_yaml
from sweeper.config.names import study_name

__all__ = ["study_name", "to_yaml"]
