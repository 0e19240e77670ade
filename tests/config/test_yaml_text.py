"""YAML of others: bounds on size, depth and aliases, and no tags."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.config.yaml_text import MAX_BYTES, YamlError, load_yaml, read_yaml
from sweeper.errors import ConfigError

LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
BAD = {
    "tag": "!!python/object/apply:os.system ['true']",
    "new": "a: !!python/object/new:subprocess.Popen [[true]]",
    "own tag": "a: !mine 1",
    "aliases": LAUGHS,
    "itself": "&a [*a]",
    "depth": "[" * 500,
    "mappings": "".join(f"{' ' * n}a:\n" for n in range(1500)),
    "size": "a: " + "x" * MAX_BYTES,
    "many": "[" + "1," * 45_000 + "]",
    "open": "a: [",
    "two": "a: 1\n---\nb: 2\n",
    "date": "a: 2024-13-45",
    "nul": "a: \0",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_refused_in_one_line_and_soon(text: str) -> None:
    began = time.perf_counter()
    with pytest.raises(YamlError) as caught:
        load_yaml(text)
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - began < 20


def test_ordinary_yaml_with_an_alias_is_read() -> None:
    assert load_yaml("a: &x {b: [1, 2]}\nc: *x\nd: {<<: *x, e: 1}") == {
        "a": {"b": [1, 2]},
        "c": {"b": [1, 2]},
        "d": {"b": [1, 2], "e": 1},
    }


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ConfigError, match="100000000 bytes"):
        read_yaml(path, "space=space.yaml")


def test_a_group_file_with_a_bomb_is_named(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(LAUGHS)
    with pytest.raises(ConfigError, match=r"space\.yaml: not valid YAML: it stands for more"):
        compose([f"space={path}"])
