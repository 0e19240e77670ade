from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from sweeper.engine.runtime_folder import VARIABLE
from sweeper.engine.socket_folder import LONGEST_FOLDER, emptied, socket_folder


def test_what_an_earlier_launch_left_goes_and_so_does_what_this_one_leaves(tmp_path: Path) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir()
    (folder / "of-a-killed-launch").touch()
    with emptied(folder):
        assert list(folder.iterdir()) == []
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "s"))
        assert (folder / "s").is_socket()
    assert not folder.exists()


def test_it_goes_also_when_the_launch_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), emptied(tmp_path / "sockets"):
        raise RuntimeError
    assert not (tmp_path / "sockets").exists()


def test_each_set_of_devices_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # A test's own folder has too long a name for a socket.
    with tempfile.TemporaryDirectory(prefix="s") as short:
        monkeypatch.setenv(VARIABLE, short)
        one, other = socket_folder(["GPU-1"]), socket_folder(["GPU-2"])
        assert one is not None
        assert one != other
        assert socket_folder(["cpu"]) == one.with_name("sockets-cpu")


def test_a_place_too_long_for_a_socket_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / ("x" * LONGEST_FOLDER)))
    assert socket_folder(["cpu"]) is None
