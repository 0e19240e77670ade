"""A damaged cache of compiled code is wiped, and nothing else ever is."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.engine import compile_cache
from sweeper.engine.compile_cache import MARKER, looks_damaged, prepare, wipe

READING = """
  File "/v/site-packages/vllm/compilation/backends.py", line 187, in load
    compiled_graph = self.compiler.load(handle, graph, example_inputs)
  File "/v/site-packages/torch/_inductor/output_code.py", line 12, in foo
    return pickle.loads(data)
EOFError: Ran out of input
"""


def test_a_death_while_compiled_code_is_read_back() -> None:
    assert looks_damaged(READING)
    assert looks_damaged(READING.replace("EOFError", "_pickle.UnpicklingError"))


@pytest.mark.parametrize(
    "text",
    [
        "EOFError: Ran out of input",
        READING.replace("EOFError", "torch.OutOfMemoryError"),
        READING.replace("in load", "in compile_fx").replace("output_code", "compile_fx"),
        "EOFError: first\n" + READING.replace("EOFError", "AssertionError"),
        "",
    ],
)
def test_other_deaths_leave_the_cache_alone(text: str) -> None:
    assert not looks_damaged(text)


def made(below: Path) -> Path:
    folder = prepare(below / "vllm" / "cpu")
    (folder / "torch_compile_cache").mkdir()
    (folder / "torch_compile_cache" / "artifact").write_text("damaged")
    return folder


def test_a_cache_of_ours_is_wiped_and_made_anew(tmp_path: Path) -> None:
    folder = made(tmp_path)
    assert wipe(folder, tmp_path) is None
    assert [entry.name for entry in folder.iterdir()] == [MARKER]
    assert [entry.name for entry in folder.parent.iterdir()] == ["cpu"]


def test_a_link_inside_is_removed_and_not_followed(tmp_path: Path) -> None:
    folder = made(tmp_path / "cache")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (folder / "link").symlink_to(precious)
    assert wipe(folder, tmp_path / "cache") is None
    assert (precious / "file").exists()


@pytest.mark.parametrize("kind", ["link", "link above", "no marker", "outside", "itself", "up"])
def test_what_is_not_ours_for_certain_is_not_removed(tmp_path: Path, kind: str) -> None:
    below, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    target = made(elsewhere)
    folder = below / "vllm" / "cpu"
    if kind == "link":
        folder.parent.mkdir(parents=True)
        folder.symlink_to(target)
    elif kind == "link above":
        below.mkdir()
        (below / "vllm").symlink_to(elsewhere / "vllm")
    elif kind == "no marker":
        folder.mkdir(parents=True)
        (folder / "theirs").touch()
    else:
        below.mkdir()
        folder = {"outside": target, "itself": below, "up": below / ".." / "elsewhere"}[kind]
    assert wipe(folder, below) is not None
    assert (target / "torch_compile_cache" / "artifact").exists()
    assert kind != "no marker" or (folder / "theirs").exists()


def test_a_folder_that_others_made_is_used_and_not_marked(tmp_path: Path) -> None:
    assert prepare(tmp_path) == tmp_path
    assert not (tmp_path / compile_cache.MARKER).exists()
