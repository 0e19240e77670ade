"""The checkpoints of this machine: shown, checked and removed by the verb."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sweeper import verbs
from sweeper.errors import ConfigError, StudyError
from sweeper.models.cache import build_once, hold
from sweeper.quantize.cache import folder_of
from sweeper.verbs import checkpoints

KEYS = ["00000000000000a1", "00000000000000b2", "00000000000000c3"]


def put(cache: Path, key: str) -> None:
    def build(folder: Path) -> dict[str, Any]:
        (folder / "model.safetensors").write_bytes(b"w" * (1 << 20))
        return {
            "key": key,
            "recipe": {"name": "w4a16", "tool": "llmcompressor", "bits": 4, "group_size": 64},
            "model": {"path": "/models/[tiny]"},
            "seconds": 185.0,
        }

    build_once(folder_of(cache, key), build, print)


class Verb:
    def __init__(self, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.cache = cache
        self._capsys = capsys
        self.code = 0

    def __call__(self, *arguments: str) -> str:
        self.code = verbs.run(["checkpoints", f"cache_dir={self.cache}", *arguments])
        return self._capsys.readouterr().out

    def json(self, *arguments: str) -> dict[str, Any]:
        return dict(json.loads(self(*arguments, "format=json")))


@pytest.fixture
def verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verb:
    return Verb(tmp_path, capsys)


def test_a_key_can_be_copied_from_a_narrow_terminal(
    verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    put(verb.cache, KEYS[0])
    told = verb()
    assert KEYS[0] in told
    assert "whole" in told
    assert max(map(len, told.splitlines()[1:])) <= 100


def test_what_is_there_and_what_becomes_of_it(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "no checkpoint has been made" in verb()
    for key in KEYS:
        put(verb.cache, key)
    table = " ".join(verb().split())
    for expected in (
        *KEYS,
        "w4a16: llmcompressor",
        "group size 64",
        "[tiny]",
        "3 min 05 s",
        "whole",
    ):
        assert expected in table
    weights = folder_of(verb.cache, KEYS[0]) / "model.safetensors"
    weights.write_bytes(b"w")
    with hold(folder_of(verb.cache, KEYS[1])):
        told = verb.json()
        states = {one["key"]: (one["state"], one["in_use"]) for one in told["checkpoints"]}
        assert states == {
            KEYS[0]: ("damaged", False),
            KEYS[1]: ("whole", True),
            KEYS[2]: ("whole", False),
        }
        # What is named and in use stays, and the command has not done what it was told.
        assert f"{KEYS[1]} stays" in verb(f"prune={KEYS[1]},{KEYS[2]}")
        assert verb.code == 1
        assert [one["key"] for one in verb.json()["checkpoints"]] == [KEYS[1], KEYS[0]]
        assert [one["key"] for one in verb.json("prune=damaged")["removed"]] == [KEYS[0]]
        assert verb.code == 0
        told = verb.json("prune=all")
        assert (told["removed"], told["kept"], verb.code) == ([], [KEYS[1]], 0)
    assert "removed 00000000000000b2: 0.00 GiB free now" in verb("limit_gib=0")
    assert "no checkpoint" in verb()


def test_every_byte_is_read_on_request(verb: Verb) -> None:
    put(verb.cache, KEYS[0])
    weights = folder_of(verb.cache, KEYS[0]) / "model.safetensors"
    before = weights.stat()
    weights.write_bytes(b"x" * (1 << 20))
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert verb.json()["checkpoints"][0]["state"] == "whole"
    assert verb.json("verify=true")["checkpoints"][0]["state"] == "damaged"


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("prune=00000000000000b3", "did you mean prune=00000000000000b2"),
        ("prune=", "keys here: "),
        ("prune=dammaged", "did you mean prune=damaged"),
        ("limit_gib=much", "limit_gib=50"),
        ("limit_gib=-1", "limit_gib=50"),
        ("limit_gib=nan", "limit_gib=50"),
        ("limit_gib=inf", "limit_gib=50"),
        ("verify=yes", "true"),
        ("format=xml", "json"),
        ("prun=all", "it takes format, verify, prune"),
    ],
)
def test_bad_input_removes_nothing(verb: Verb, argument: str, says: str) -> None:
    put(verb.cache, KEYS[1])
    with pytest.raises(ConfigError) as wrong:
        verb(argument)
    assert says in wrong.value.remedy
    assert folder_of(verb.cache, KEYS[1]).is_dir()


def test_a_cache_that_cannot_be_read_says_so(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(folder: Path, *, thorough: bool) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(checkpoints, "entries", refuses)
    with pytest.raises(StudyError, match="Permission denied") as problem:
        verb()
    assert "cache_dir" in problem.value.remedy
