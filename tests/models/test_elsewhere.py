"""A model that a server of somebody else has loaded."""

from __future__ import annotations

import pytest

from sweeper.config.compose import compose
from sweeper.config.schema import ModelConfig
from sweeper.errors import ModelError
from sweeper.models.elsewhere import facts_elsewhere, served_elsewhere

THERE = ["engine=openai", "engine.base_url=http://x"]


def test_a_model_nobody_described_has_the_servers_name_and_no_shape() -> None:
    model = served_elsewhere(compose(THERE).model, "org/llama")
    assert (model.name, model.path, model.source) == ("org/llama", "org/llama", "server")
    assert (model.facts, model.licence, model.digest, model.size_bytes) == (None,) * 4


def test_a_described_model_keeps_its_name_and_lends_its_shape() -> None:
    model = served_elsewhere(compose([*THERE, "model=qwen7b"]).model, "prod-7b")
    assert (model.name, model.path) == ("qwen7b", "prod-7b")
    assert model.facts is not None
    assert model.facts.vocab_size == 152064
    assert model.licence


def test_a_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(ModelError, match="/no/such"):
        facts_elsewhere(ModelConfig(name="x", path="/no/such", source="local"))
