"""The address of a server that somebody else started (`engine.base_url`). Pure."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit

from sweeper.errors import ConfigError

KEY = "engine.base_url"
EXAMPLE = f"for example {KEY}=http://10.0.0.5:8000"
API_SUFFIX = "/v1"


def plain_address(url: str) -> str:
    """An address in one form: no slash at its end, and without ``/v1``.

    >>> plain_address("https://Example.org:8000/api/v1/")
    'https://example.org:8000/api'

    Raises:
        ConfigError: no http or https address, or one with more in it than host, port and path. A
            password is not repeated in the message.
    """
    split = _split(url.strip())
    if split.username is not None or split.password is not None:
        raise ConfigError(
            f"{KEY} has a user name or password in it, and addresses are recorded and shown",
            "leave it out of the address; a key is read from the environment variable that "
            "engine.api_key_env names",
        )
    if split.scheme not in {"http", "https"} or not split.hostname:
        raise ConfigError(f"{KEY}={url} is no http or https address", EXAMPLE)
    if split.query or split.fragment:
        raise ConfigError(
            f"{KEY} has a '?' or '#' part, and addresses are recorded and shown",
            f"give host, port and path only, {EXAMPLE}",
        )
    host = f"[{split.hostname}]" if ":" in split.hostname else split.hostname
    place = host if split.port is None else f"{host}:{split.port}"
    path = split.path.rstrip("/").removesuffix(API_SUFFIX).rstrip("/")
    return urlunsplit((split.scheme, place, path, "", ""))


def _split(url: str) -> SplitResult:
    try:
        split = urlsplit(url)
        # Only looking at the port finds out whether it is one.
        _ = split.port
    except ValueError:
        # What follows an '@' may be the host, what precedes it a password.
        shown = url if "@" not in url else "(hidden)"
        raise ConfigError(f"{KEY}={shown} cannot be read as an address", EXAMPLE) from None
    return split
