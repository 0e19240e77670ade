"""The exported YAML read back as vLLM reads it, and what was edited in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.errors import SweeperError
from sweeper.export.bundle import write_bundle
from sweeper.export.registry import render_all
from sweeper.export.verify.files import differences, origin_of, parse_flags, read_exported
from sweeper.export.verify.mock import stub_parameters
from sweeper.export.vllm_config import YAML_NAME, config
from tests.export.conftest import make_source

VALUES = st.one_of(
    st.booleans(),
    st.integers(-5, 1000),
    st.floats(-1, 1, allow_nan=False).map(lambda value: round(value, 3)),
    st.text("abc-_.", min_size=1, max_size=6),
    st.dictionaries(st.text("xyz_", min_size=1, max_size=4), st.integers(0, 9), min_size=1),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
)
NAMES = st.from_regex(r"[a-m][a-z]{0,6}(_[a-z]{1,4}){0,2}", fullmatch=True)

SOURCE = make_source()


@settings(max_examples=50, deadline=None)
@given(flags=st.dictionaries(NAMES, VALUES, max_size=6))
def test_what_is_exported_is_read_back(flags: dict[str, Any]) -> None:
    source = replace(SOURCE, flags=flags)
    text = yaml.safe_dump(json.loads(json.dumps(config(source))), allow_unicode=True)
    found = parse_flags(yaml.safe_load(text))
    for name, value in source.public_flags.items():
        if name not in {"model", "host", "port", "revision"}:
            assert found[name] == value or str(found[name]) == value, name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "recommended", render_all(["vllm"], make_source()))
    return tmp_path / "recommended"


def edit(folder: Path, **entries: Any) -> None:
    path = folder / YAML_NAME
    data = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**data, **entries}))


def test_an_export_differs_in_nothing_from_what_was_measured(folder: Path) -> None:
    exported = read_exported(folder)
    assert differences(exported, make_source()) == {}
    origin = origin_of(folder)
    assert origin is not None and (origin.trial, origin.level) == (1, "concurrency 8")
    assert origin.edits == {}
    assert (exported.model, exported.served_names) == ("org/model", ("tiny",))
    assert exported.env["VLLM_CPU_OMP_THREADS_BIND"] == "0|1" and "HF_TOKEN" not in exported.env
    assert exported.flags["enable_prefix_caching"] is False


def test_every_edit_is_named_but_for_where_the_server_listens(folder: Path) -> None:
    edit(folder, **{"max-num-seqs": 32, "port": 9000, "served-model-name": "mine", "seed": 7})
    assert differences(read_exported(folder), make_source()) == {
        "max_num_seqs": (64, 32),
        "seed": (None, 7),
    }
    origin = origin_of(folder)
    assert origin is not None and set(origin.edits) == {"max_num_seqs", "seed"}


def test_a_file_knows_when_it_is_another(folder: Path) -> None:
    before = read_exported(folder).sha256
    edit(folder, port=9000)
    assert read_exported(folder).sha256 != before


def test_several_names_of_a_server_are_kept_apart(folder: Path) -> None:
    edit(folder, **{"served-model-name": ["a", "b"]})
    assert read_exported(folder).served_names == ("a", "b")


@pytest.mark.parametrize("text", ["- 1", "a: [", "max-num-seqs: 4\n", "model: 7\n"])
def test_a_file_that_starts_nothing_is_named(folder: Path, text: str) -> None:
    (folder / YAML_NAME).write_text(text)
    with pytest.raises(SweeperError, match=r"vllm\.yaml"):
        read_exported(folder)


def test_what_stands_alone_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    assert origin_of(tmp_path / "nothing") is None
    (folder / "recommendation.json").unlink()
    with pytest.raises(SweeperError, match="stands without"):
        origin_of(folder)


def test_the_stub_takes_speculation_in_its_own_words() -> None:
    flags = {
        "max_num_seqs": 4,
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 2},
    }
    assert stub_parameters(flags) == {
        "max_num_seqs": 4,
        "speculative": "ngram",
        "num_speculative_tokens": 2,
    }
