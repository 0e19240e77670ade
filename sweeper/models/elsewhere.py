"""A model that a server of somebody else has loaded: known by what server and user say of it."""

from __future__ import annotations

from sweeper.config.schema import ModelConfig
from sweeper.models.facts import ModelFacts
from sweeper.models.resolve import ResolvedModel, facts_only

UNNAMED = "served"
"""Name of the model group's option that says nothing of the model."""


def facts_elsewhere(cfg: ModelConfig) -> ModelFacts | None:
    """The model's shape, if the configuration says which model it is. Nothing is fetched.

    Raises:
        ModelError: it names a folder without a readable config.json, say.
    """
    return None if cfg.path is None and cfg.name == UNNAMED else facts_only(cfg)


def served_elsewhere(cfg: ModelConfig, served_name: str) -> ResolvedModel:
    """The model behind a server that is already there.

    Args:
        cfg: the model group.
        served_name: what the server calls it; also its name, unless the configuration has one.

    Raises:
        ModelError: see `facts_elsewhere`.
    """
    told = cfg.name != UNNAMED
    return ResolvedModel(
        name=cfg.name if told else served_name,
        path=served_name,
        source="server",
        revision=cfg.revision,
        facts=facts_elsewhere(cfg),
        licence=cfg.licence,
    )
