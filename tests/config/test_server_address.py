"""One form of an address, and no secret in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.config.server_address import plain_address
from sweeper.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("http://host:8000", "http://host:8000"),
        ("http://host:8000/", "http://host:8000"),
        ("http://host:8000/v1", "http://host:8000"),
        ("http://host:8000/v1/", "http://host:8000"),
        (" https://Api.Example.ORG/v1 ", "https://api.example.org"),
        ("HTTPS://host/openai/v1", "https://host/openai"),
        ("https://host/my/Path/", "https://host/my/Path"),
        ("https://host/v1beta", "https://host/v1beta"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ],
)
def test_plain_form(url: str, plain: str) -> None:
    assert plain_address(url) == plain


@given(
    st.from_regex(r"https?://[a-z]{1,8}(:[1-9][0-9]{0,3})?(/[a-z0-9]{1,5}){0,3}/?", fullmatch=True)
)
def test_a_plain_form_is_its_own(url: str) -> None:
    once = plain_address(url)
    # One `/v1` is the API's; a second one would be a path of the server's own.
    assert plain_address(once) == once or once.endswith("/v1")
    assert plain_address(url + "/v1").startswith(once.removesuffix("/v1"))


@pytest.mark.parametrize(
    "url",
    ["", "host:8000", "//host", "ftp://host", "http://", "http://host:port", "http://h:99999"],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plain_address(url)
    assert "engine.base_url" in caught.value.message
    assert "http://" in caught.value.remedy


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2@host",
        "http://hunter2@host",
        "http://user:hunter2@host:port",
        "http://host/v1?key=hunter2",
        "http://host/#hunter2",
    ],
)
def test_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plain_address(url)
    assert "hunter2" not in str(caught.value)
