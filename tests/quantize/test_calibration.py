"""Calibration texts: the built-in ones, files of the user's, and their hash."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.errors import ConfigError
from sweeper.quality.suite import load_suite
from sweeper.quantize.calibration import (
    calibration_hash,
    json_lines,
    paragraphs,
    text_of,
    texts,
    write_texts,
)
from sweeper.quantize.recipe import Recipe

RECIPE = Recipe(
    name="w4a16",
    tool="llmcompressor",
    calibration="builtin",
    calibration_samples=128,
    calibration_tokens=512,
)
WORD = st.text(st.characters(blacklist_categories=("Cs", "Z", "Cc")), min_size=1, max_size=8)
PARAGRAPH = st.lists(WORD, min_size=1, max_size=4).map(" ".join)


def with_file(path: Path, content: str | bytes, **changed: Any) -> Recipe:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return replace(RECIPE, calibration=str(path), **changed)


def builtin() -> list[dict[str, str]]:
    path = resources.files("sweeper.quantize").joinpath("data", "calibration.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_built_in_texts_are_many_and_of_many_kinds() -> None:
    entries = builtin()
    kinds = Counter(entry["kind"] for entry in entries)
    assert len(entries) >= 150
    assert set(kinds) == {
        *("english", "chinese", "german", "french", "spanish"),
        *("code", "maths", "json", "dialogue"),
    }
    assert min(kinds.values()) >= 8
    assert len({entry["text"] for entry in entries}) == len(entries)
    assert all(len(entry["text"]) >= 140 for entry in entries)


@pytest.mark.parametrize("first", [32, 64, 128])
def test_the_first_few_are_as_mixed_as_all(first: int) -> None:
    entries = builtin()
    whole = Counter(entry["kind"] for entry in entries)
    part = Counter(entry["kind"] for entry in entries[:first])
    for kind, count in whole.items():
        assert abs(part[kind] - count * first / len(entries)) <= 1.5, kind


def test_nothing_is_calibrated_on_what_quality_is_judged_by() -> None:
    prompts = " ".join(" ".join(prompt.text.split()) for prompt in load_suite())
    for entry in builtin():
        words = entry["text"].split()
        runs = (" ".join(words[i : i + 8]) for i in range(max(len(words) - 8, 0)))
        assert not any(run in prompts for run in runs), entry["text"][:60]


def test_a_recipe_gets_no_more_texts_than_it_has_samples() -> None:
    assert texts(replace(RECIPE, calibration_samples=5)) == [
        entry["text"] for entry in builtin()[:5]
    ]
    assert len(texts(replace(RECIPE, calibration_samples=None))) == len(builtin())
    assert texts(replace(RECIPE, calibration=None)) == []


@given(st.lists(PARAGRAPH, max_size=6), st.lists(st.integers(1, 3), min_size=7, max_size=7))
def test_paragraphs_are_what_stands_between_blank_lines(wanted: list[str], gaps: list[int]) -> None:
    lines: list[str] = ["  \n"] * gaps[-1]
    for text, gap in zip(wanted, gaps, strict=False):
        lines += [text + "\n", *["\n"] * gap]
    assert list(paragraphs(lines, "here")) == wanted


@given(st.lists(st.text(max_size=30), max_size=6))
def test_json_lines_give_back_what_was_written(wanted: list[str]) -> None:
    lines = [json.dumps({"text": text}) + "\n" for text in wanted]
    assert list(json_lines(lines, "here")) == [text for text in wanted if text.strip()]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"text": "plain", "kind": "x"}, "plain"),
        ({"messages": [{"role": "user", "content": "Hi"}]}, "user: Hi"),
        (
            {"conversations": [{"from": "human", "value": "A"}, {"from": "gpt", "value": "B"}]},
            "user: A\nassistant: B",
        ),
        ([{"from": "human", "value": "A"}], "user: A"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}, {"text": "what?"}]}]},
            "user: what?",
        ),
        ({"text": 3}, None),
        ({"messages": []}, None),
        ({"messages": [{"role": "user"}]}, None),
        ({"messages": ["Hi"]}, None),
        ({"prompt": "x"}, None),
        ("just a string", None),
        (7, None),
    ],
)
def test_shapes_of_an_entry(entry: Any, text: str | None) -> None:
    assert text_of(entry) == text


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.txt", b"caf\xe9", "is not UTF-8 text"),
        ("a.txt", "\n \n", "holds no texts"),
        ("a.jsonl", '{"text": " "}\n', "holds no texts"),
        ("a.jsonl", '{"text": "fine"}\n\n{"prompt": "x"}\n', "line 3 of .*a.jsonl"),
        ("a.jsonl", "{broken\n", "line 1 of .*a.jsonl"),
        ("a.jsonl", "[" * 100_000, "line 1 of .*a.jsonl"),
        ("a.csv", "text\nx\n", "no known kind of file"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_a_remedy(
    tmp_path: Path, name: str, content: str | bytes, told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        texts(with_file(tmp_path / name, content))
    assert caught.value.remedy
    assert "quantize.recipes.*.calibration" in caught.value.message


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_a_file_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        texts(replace(RECIPE, calibration=str(tmp_path / name)))


def test_the_hash_changes_with_all_that_decides_a_calibration(tmp_path: Path) -> None:
    base = with_file(tmp_path / "a.txt", "one\n\ntwo\n", calibration_samples=2)
    others = [
        replace(base, calibration_samples=1),
        replace(base, calibration_tokens=256),
        with_file(tmp_path / "b.txt", "one\n\nthree\n", calibration_samples=2),
        with_file(tmp_path / "c.txt", "two\n\none\n", calibration_samples=2),
    ]
    hashes = [calibration_hash(recipe) for recipe in (base, *others)]
    assert len(set(hashes)) == len(hashes)
    assert all(found is not None and len(found) == 16 for found in hashes)
    assert calibration_hash(replace(base, calibration=None)) is None


def test_the_hash_does_not_change_with_what_decides_nothing(tmp_path: Path) -> None:
    base = with_file(tmp_path / "a.txt", "one\n\ntwo\n", calibration_samples=2)
    same = [
        with_file(tmp_path / "b.jsonl", '{"text": "one"}\n{"text": "two"}\n{"text": "three"}\n'),
        replace(base, name="mine", bits=4, group_size=64),
    ]
    for recipe in same:
        found = calibration_hash(replace(recipe, calibration_samples=2))
        assert found == calibration_hash(base)


def test_workers_get_json_lines(tmp_path: Path) -> None:
    recipe = with_file(tmp_path / "a.txt", "первый\n\n第二\nзeile\n")
    write_texts(recipe, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": "первый"}, {"text": "第二\nзeile"}]
