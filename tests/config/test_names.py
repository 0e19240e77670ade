"""Names that become folders and variables never lead anywhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.names import check_names, leaves, study_name, study_name_fault
from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError
from sweeper.tracking.paths import StudyPaths

EVIL = ["", " ", ".", "..", "../../x", "/etc", "a/b", "a\\b", "-rf", ".hidden", "a\0b", "a\nb"]
EVIL += [
    "x" * 101,
    "\u0430-cyrillic",
    "\uff41",
    "a b",
    "a;b",
    "$(id)",
    "con",
    "NUL.txt",
    "lpt1",
    "end.",
]
EVIL += ["mlflow.db", "mlflow-artifacts", "README.md", "~", "a\u202eb", "%2e%2e", "a:b"]


@pytest.mark.parametrize("name", EVIL)
def test_refused(name: str) -> None:
    assert study_name_fault(name) is not None


@pytest.mark.parametrize("name", ["a", "qwen7b-gpu-vllm", "A.b_c-9", "con-1", "x" * 100, "a..b"])
def test_accepted(name: str) -> None:
    assert study_name_fault(name) is None


@given(st.one_of(st.text(max_size=120), st.from_regex(r"[A-Za-z0-9._/\\-]{1,110}", fullmatch=True)))
def test_an_accepted_name_is_one_folder_below_the_studies(name: str) -> None:
    if study_name_fault(name) is None:
        home = Path("/home/of/studies")
        root = StudyPaths(home, name).root
        assert root.resolve().parent == home
        assert root.name == name


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_a_derived_name_is_always_accepted(model: str, space: str, engine: str) -> None:
    cfg = SweeperConfig()
    cfg.model.name, cfg.space.name, cfg.engine.name = model, space, engine
    name = study_name(cfg)
    fault = study_name_fault(name)
    # What only the user can have meant stays theirs to be told of: names of devices and of ours.
    assert fault is None or fault == "is taken by something else"


@pytest.mark.parametrize("name", ["A;rm -rf", "A B", "1A", "", "A=B", "$(id)", "A\nB"])
def test_a_variable_that_cannot_be_one_is_named(name: str) -> None:
    cfg = SweeperConfig()
    cfg.engine.env = {name: "x"}
    with pytest.raises(ConfigError, match="environment variable"):
        check_names(cfg)
    cfg = SweeperConfig()
    cfg.space.parameters = {f"env.{name}": ["x"]}
    with pytest.raises(ConfigError, match="environment variable"):
        check_names(cfg)


@pytest.mark.parametrize("text", ["a\0b", "\x1b[2J", "a\x7f", "a\udc80b", "a\rb"])
def test_text_that_no_file_can_hold_is_refused_in_plain_words(text: str) -> None:
    cfg = SweeperConfig()
    cfg.model.path = text
    with pytest.raises(ConfigError, match=r"model\.path") as caught:
        check_names(cfg)
    assert re.fullmatch(r"[\x20-\x7e\n]*", str(caught.value))


def test_text_of_all_languages_is_taken() -> None:
    cfg = SweeperConfig()
    cfg.model.path = "/modèles/模型 (new)\n"
    check_names(cfg)


def test_leaves_are_found_wherever_they_are() -> None:
    found = list(leaves({"a": {"b": ["x", {"c": "y"}], "n": 1}, "d": "z", "e": None}))
    assert found == [("a.b", "x"), ("a.b.c", "y"), ("d", "z")]
