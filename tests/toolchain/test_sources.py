from __future__ import annotations

import subprocess

import pytest

from sweeper.toolchain import sources
from sweeper.toolchain.sources import parse_pip_config, pip_settings, uv_environment

LISTING = """:env:.find-links='/from/env'
global.find-links='/a /b'
global.index-url='https://mirror.example/simple'
install.index-url='https://other.example/simple'
global.timeout='60'
global.cert=/bare/path
"""


def test_files_of_pip_are_read_with_the_install_section_first() -> None:
    assert parse_pip_config(LISTING) == {
        "find-links": "/a /b",
        "index-url": "https://other.example/simple",
        "cert": "/bare/path",
    }


def test_variables_of_pip_win_over_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIND_LINKS", "INDEX_URL", "EXTRA_INDEX_URL", "CERT"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    monkeypatch.setattr(sources, "_pip_config", lambda: LISTING)
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setenv("PIP_FIND_LINKS", " /mine ")
    assert pip_settings()["find-links"] == "/mine"
    assert pip_settings()["cert"] == "/bare/path"
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda _: None)
    assert pip_settings() == {"find-links": "/mine"}


def test_a_pip_that_does_not_answer_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("pip", 1)

    monkeypatch.setattr(sources.subprocess, "run", refuses)
    assert sources._pip_config() == ""


PIP = {
    "find-links": "/a /b",
    "index-url": "https://mirror.example/simple",
    "extra-index-url": "file:///one\nfile:///two",
    "trusted-host": "mirror.example",
    "no-index": "false",
    "cert": "/ca.pem",
}


def test_sources_are_handed_on_in_the_words_of_uv() -> None:
    told = uv_environment({}, PIP, "/python")
    assert told == {
        "UV_FIND_LINKS": "/a,/b",
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "file:///one file:///two",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "mirror.example",
        "SSL_CERT_FILE": "/ca.pem",
        "UV_PYTHON": "/python",
        "NO_COLOR": "1",
    }
    assert uv_environment({}, {"no-index": "1"}, "/python")["UV_NO_INDEX"] == "1"


@pytest.mark.parametrize(
    ("own", "absent"),
    [
        ({"UV_FIND_LINKS": "/mine"}, set()),
        ({"UV_DEFAULT_INDEX": "https://mine.example"}, set()),
        ({"UV_INDEX_URL": "https://mine.example"}, {"UV_DEFAULT_INDEX"}),
        ({"UV_INDEX": "https://mine.example"}, {"UV_INDEX_STRATEGY"}),
        ({"UV_EXTRA_INDEX_URL": "https://mine.example"}, {"UV_INDEX", "UV_INDEX_STRATEGY"}),
        ({"SSL_CERT_FILE": "/mine.pem"}, set()),
    ],
)
def test_what_uv_is_told_itself_wins(own: dict[str, str], absent: set[str]) -> None:
    told = uv_environment(own, PIP, "/python")
    assert own.items() <= told.items()
    assert not absent & told.keys()


def test_the_tuners_own_environment_is_none_of_uvs() -> None:
    foreign = dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "UV_NO_CACHE"), "x")
    told = uv_environment({**foreign, "UV_PYTHON": "/other", "HOME": "/h"}, {}, "/python")
    assert told == {"HOME": "/h", "UV_PYTHON": "/python", "NO_COLOR": "1"}
