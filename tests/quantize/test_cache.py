from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.models.cache import build_once, hold, verified
from sweeper.quantize.cache import (
    GIB,
    State,
    content_digest,
    entries,
    folder_of,
    keep_within,
    key_of,
    room_for,
    usable,
    weight_bytes,
)
from tests.quantize.fakes import RECIPE, job_for

JOB = job_for(Path("/models/m"), Path("/cache"))
VERSIONS = {"fake": "==1.0"}


def key(calibration: str | None = "c1", versions: dict[str, str] = VERSIONS, **changes: Any) -> str:
    recipe = {name: changes.pop(name) for name in list(changes) if hasattr(RECIPE, name)}
    return key_of(replace(JOB, recipe=replace(RECIPE, **recipe), **changes), calibration, versions)


def test_a_key_is_sixteen_hex_digits() -> None:
    assert len(key()) == 16
    assert int(key(), 16) >= 0


@pytest.mark.parametrize(
    "changes",
    [
        {"bits": 8},
        {"group_size": 32},
        {"symmetric": False},
        {"act_order": True},
        {"method": "W8A8"},
        {"tool": "gptqmodel"},
        {"calibration_samples": 16},
        {"calibration_tokens": 16},
        {"calibration": "c2"},
        {"versions": {"fake": "==1.1"}},
        {"model_digest": "d2"},
        {"model_digest": None},
    ],
)
def test_what_decides_the_content_decides_the_key(changes: dict[str, Any]) -> None:
    assert key(**changes) != key()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "mine"},
        {"model_path": "/elsewhere"},
        {"timeout_s": 1.0},
        {"device": "cuda"},
        {"memory_gib": 1.0},
        {"cache_limit_gib": 1.0},
        {"cache_dir": Path("/other")},
    ],
)
def test_what_does_not_decide_the_content_does_not(changes: dict[str, Any]) -> None:
    assert key(**changes) == key()


def test_a_model_without_a_digest_is_known_by_id_and_revision() -> None:
    one = key(model_digest=None, model_path="org/m", revision="r1")
    assert one != key(model_digest=None, model_path="org/m", revision="r2")
    assert one != key(model_digest=None, model_path="org/n", revision="r1")


@given(st.dictionaries(st.text(), st.text()))
def test_the_order_of_versions_does_not_matter(versions: dict[str, str]) -> None:
    assert key(versions=versions) == key(versions=dict(reversed(versions.items())))


def put(cache: Path, name: str, size_bytes: int, used_s: int | None = None) -> Path:
    """A checkpoint in the cache."""

    def build(folder: Path) -> dict[str, Any]:
        (folder / "model.safetensors").write_bytes(b"w" * size_bytes)
        return {"key": name, "recipe": {"name": "r", "tool": "t"}}

    folder = folder_of(cache, name)
    build_once(folder, build, print)
    if used_s is not None:
        with hold(folder):
            pass
        os.utime(folder.with_name(f".{name}.use"), (used_s, used_s))
    return folder


KEYS = [f"{number:016x}" for number in range(6)]


def test_what_is_there_last_used_first(tmp_path: Path) -> None:
    assert entries(tmp_path) == []
    put(tmp_path, KEYS[0], 100, used_s=1)
    put(tmp_path, KEYS[1], 100, used_s=3)
    put(tmp_path, KEYS[2], 100)
    (tmp_path / "checkpoints" / "somebody-elses").mkdir()
    found = entries(tmp_path)
    assert [entry.key for entry in found] == [KEYS[1], KEYS[0], KEYS[2]]
    assert [entry.last_used_s for entry in found] == [3, 1, None]
    assert all(entry.state is State.WHOLE and not entry.in_use for entry in found)
    assert all(entry.size_bytes > 100 and entry.facts["key"] == entry.key for entry in found)


def test_states(tmp_path: Path) -> None:
    damaged, moved = put(tmp_path, KEYS[0], 100), put(tmp_path, KEYS[1], 100)
    (damaged / "model.safetensors").write_bytes(b"w" * 99)
    moved.rename(folder_of(tmp_path, KEYS[2]))
    left = folder_of(tmp_path, KEYS[3]).with_name(f"{KEYS[3]}.partial-77")
    left.mkdir()
    (left / "half").write_bytes(b"h" * 50)
    states = {entry.key: entry.state for entry in entries(tmp_path)}
    assert states == {
        KEYS[0]: State.DAMAGED,
        KEYS[2]: State.DAMAGED,  # whole, and yet not what its name says
        KEYS[3]: State.UNFINISHED,
    }
    assert {entry.size_bytes for entry in entries(tmp_path) if entry.key == KEYS[3]} == {50}
    with hold(folder_of(tmp_path, KEYS[0])):
        assert [entry.in_use for entry in entries(tmp_path)].count(True) == 1


def test_what_is_in_the_making_is_shown_so(tmp_path: Path) -> None:
    seen = []

    def build(folder: Path) -> dict[str, Any]:
        (folder / "half").write_bytes(b"h")
        seen.extend(entries(tmp_path))
        assert keep_within(tmp_path, 0.0)[0] == []
        return {"key": KEYS[0]}

    build_once(folder_of(tmp_path, KEYS[0]), build, print)
    assert [(entry.state, entry.in_use) for entry in seen] == [(State.IN_THE_MAKING, True)]


def test_only_a_thorough_look_reads_what_kept_its_time(tmp_path: Path) -> None:
    weights = put(tmp_path, KEYS[0], 100) / "model.safetensors"
    before = weights.stat()
    weights.write_bytes(b"x" * 100)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert entries(tmp_path)[0].state is State.WHOLE
    assert entries(tmp_path, thorough=True)[0].state is State.DAMAGED


def test_least_recently_used_go_first(tmp_path: Path) -> None:
    for number, used_s in enumerate([30, 10, 20, 40]):
        put(tmp_path, KEYS[number], 1 << 20, used_s=used_s)
    removed, left_gib = keep_within(tmp_path, 2.5 / 1024)
    assert [entry.key for entry in removed] == [KEYS[1], KEYS[2]]
    assert [entry.key for entry in entries(tmp_path)] == [KEYS[3], KEYS[0]]
    assert left_gib == pytest.approx(2 / 1024, rel=0.01)
    assert keep_within(tmp_path, 2.5 / 1024)[0] == []


def test_worthless_goes_first_and_what_is_used_or_was_just_made_stays(tmp_path: Path) -> None:
    for number, used_s in enumerate([10, 20, 30, 40]):
        put(tmp_path, KEYS[number], 1 << 20, used_s=used_s)
    (folder_of(tmp_path, KEYS[3]) / "model.safetensors").write_bytes(b"w" * (1 << 19))
    with hold(folder_of(tmp_path, KEYS[0])):
        os.utime(folder_of(tmp_path, KEYS[0]).with_name(f".{KEYS[0]}.use"), (10, 10))
        removed, left_gib = keep_within(tmp_path, 0.0, keep=KEYS[1])
    assert [entry.key for entry in removed] == [KEYS[3], KEYS[2]]
    assert {entry.key for entry in entries(tmp_path)} == {KEYS[0], KEYS[1]}
    assert left_gib > 0


def test_a_digest_of_content_and_the_size_of_weights(tmp_path: Path) -> None:
    one, other = put(tmp_path, KEYS[0], 100), put(tmp_path, KEYS[1], 100)
    manifests = [verified(one), verified(other)]
    assert manifests[0] is not None and manifests[1] is not None
    assert content_digest(manifests[0]) == content_digest(manifests[1])
    assert weight_bytes(manifests[0]) == 100
    larger = verified(put(tmp_path, KEYS[2], 101))
    assert larger is not None and content_digest(larger) != content_digest(manifests[0])
    assert usable(KEYS[0])(one) is not None
    assert usable(KEYS[1])(one) is None


@given(st.sampled_from([None, 2, 3, 4, 8, 16]), st.integers(0, 10**12))
def test_a_checkpoint_is_not_guessed_larger_than_its_model(
    bits: int | None, model_bytes: int
) -> None:
    job = replace(JOB, recipe=replace(RECIPE, bits=bits))
    assert model_bytes * (bits or 0) / 16 - 1 <= room_for(job, model_bytes) <= model_bytes
    assert room_for(replace(JOB, recipe=RECIPE), 16 * GIB) == 8 * GIB
