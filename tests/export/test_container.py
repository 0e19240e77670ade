from __future__ import annotations

from sweeper.export.container import contained, notes, other_files
from tests.export.conftest import make_source


def test_models_of_one_name_get_places_of_their_own() -> None:
    draft = {"method": "draft_model", "model": "/b/Model", "num_speculative_tokens": 2}
    source = make_source(
        model_path="/a/Model", flags={"tokenizer": "/a/Model", "speculative_config": draft}
    )
    inside = contained(source, "/models")
    assert dict(inside.mounts) == {"/a/Model": "/models/model", "/b/Model": "/models/model-2"}
    assert inside.source.model_path == "/models/model"
    assert inside.source.flags["tokenizer"] == "/models/model"
    assert inside.source.flags["speculative_config"] == {**draft, "model": "/models/model-2"}


def test_a_model_of_a_hub_is_mounted_nowhere() -> None:
    inside = contained(make_source(), "/models")
    assert inside.mounts == {}
    assert inside.source.model_path == "org/model"
    assert inside.source.host == "0.0.0.0"


def test_folders_keep_their_paths_where_they_may() -> None:
    inside = contained(make_source(model_path="/a/Model"))
    assert dict(inside.mounts) == {"/a/Model": "/a/Model"}


def test_further_files_of_this_machine_are_named() -> None:
    source = make_source(flags={"chat_template": "/a/chat.jinja", "tokenizer": "/a/t"})
    assert other_files(source) == ["chat_template"]
    assert "Mount the files that these flags name: chat_template." in notes(source)
