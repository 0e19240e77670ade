"""Where tuners meet, and what is refused there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.engine import runtime_folder
from sweeper.errors import EngineError


def test_the_named_folder_is_made_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(runtime_folder.VARIABLE, str(tmp_path / "a" / "b"))
    assert runtime_folder.shared_folder() == tmp_path / "a" / "b"
    own = runtime_folder.own_folder()
    assert own.parent == tmp_path / "a" / "b"
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_names_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(runtime_folder.VARIABLE, str(tmp_path / "file" / "in"))
    with pytest.raises(EngineError, match=runtime_folder.VARIABLE):
        runtime_folder.shared_folder()


def test_the_folder_is_chosen_by_its_mode_alike_for_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(runtime_folder.VARIABLE, raising=False)
    private, link, shared = tmp_path / "private", tmp_path / "link", tmp_path / "shared"
    private.mkdir(mode=0o700)
    shared.mkdir()
    shared.chmod(0o1777)
    link.symlink_to(shared)
    monkeypatch.setattr(runtime_folder, "_SHARED", (tmp_path / "none", private, link, shared))
    assert runtime_folder.shared_folder() == shared


@pytest.mark.parametrize("kind", ["link", "file", "open"])
def test_what_others_put_in_the_place_of_our_notes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv(runtime_folder.VARIABLE, str(tmp_path))
    own = runtime_folder.own_folder()
    own.rmdir()
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        own.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        own.touch()
    else:
        own.mkdir()
        own.chmod(0o777)
    with pytest.raises(EngineError):
        runtime_folder.own_folder()
