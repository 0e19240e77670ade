"""Questions to a server that somebody else started; every wrong answer has its diagnosis."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from sweeper.engine.local_http import Reply, call_url
from sweeper.engine.protocol import LaunchFailure
from sweeper.verdicts import Diagnosis, Phase, Verdict

MAX_QUOTED_CHARS = 300
MAX_NAMES = 10
HIDDEN = "(hidden)"


@dataclass(frozen=True)
class Address:
    """The server.

    Attributes:
        base_url: without ``/v1``.
        key_variable: environment variable that holds its key, for remedies.
        api_key: bearer token, empty if the variable is not set.
    """

    base_url: str
    key_variable: str
    api_key: str = field(default="", repr=False)

    def hide(self, text: str) -> str:
        """A server's words without the key, which some repeat."""
        return text.replace(self.api_key, HIDDEN) if self.api_key else text


@dataclass(frozen=True)
class Served:
    """What a server says of the model that is to be measured.

    Attributes:
        name: value for ``model`` in requests.
        entry: its entry in the list of models; empty if the server has no such list.
    """

    name: str
    entry: Mapping[str, Any] = field(default_factory=dict)


def find_model(address: Address, wanted: str | None, timeout_s: float) -> Served:
    """The model of that name, or the only one there is.

    Raises:
        LaunchFailure: the server does not answer as it should, does not serve that model, or
            serves several and none was named.
    """
    reply = _ask(address, "/v1/models", None, timeout_s)
    if reply.status == HTTPStatus.NOT_FOUND and wanted:
        return Served(wanted)
    listed = _json(address, "/v1/models", reply)
    entries = _entries(listed)
    if not entries:
        raise _failure(
            f"{address.base_url}/v1/models lists no model",
            "load a model there, and see that this is an OpenAI-compatible API",
            address.hide(reply.text),
        )
    name = _choose(address, wanted, list(entries))
    return Served(name, entries[name])


def first_token(address: Address, model: str, timeout_s: float) -> None:
    """Have one token written.

    Raises:
        LaunchFailure: it was not, or not in time.
    """
    body = {"model": model, "prompt": "The", "max_tokens": 1, "temperature": 0}
    path = "/v1/completions"
    reply = _ask(address, path, body, timeout_s)
    answer = _json(address, path, reply)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not choices:
        raise _failure(
            f"{address.base_url}{path} answered without a choice",
            "see that this is an OpenAI-compatible API, and what that server's log says",
            address.hide(reply.text),
        )


def version(address: Address, timeout_s: float) -> str | None:
    """The server's version from ``/version``, None if it tells none."""
    try:
        reply = call_url(address.base_url, "/version", api_key=address.api_key, timeout_s=timeout_s)
        told = reply.json() if reply.status == HTTPStatus.OK else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    found = told.get("version") if isinstance(told, dict) else None
    return found if isinstance(found, str) else None


def _entries(listed: Any) -> dict[str, Mapping[str, Any]]:
    data = listed.get("data") if isinstance(listed, dict) else None
    models = data if isinstance(data, list) else []
    return {
        str(model["id"]): model for model in models if isinstance(model, dict) and model.get("id")
    }


def _choose(address: Address, wanted: str | None, names: list[str]) -> str:
    shown = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    if wanted in names:
        return str(wanted)
    if wanted:
        raise _failure(
            f"{address.base_url} does not serve {wanted}; it serves {shown}",
            "name one of these with engine.served_model=NAME",
        )
    if len(names) > 1:
        raise _failure(
            f"{address.base_url} serves several models: {shown}",
            "name the one to measure with engine.served_model=NAME",
        )
    return names[0]


def _ask(address: Address, path: str, body: Mapping[str, Any] | None, timeout_s: float) -> Reply:
    url = f"{address.base_url}{path}"
    started = time.monotonic()
    try:
        return call_url(address.base_url, path, body, api_key=address.api_key, timeout_s=timeout_s)
    except TimeoutError:
        waited_s = time.monotonic() - started
        cause = f"{url} did not answer in {waited_s:.0f} s"
        remedy = "see whether that server is stuck or busy; or raise engine.start_timeout_s"
    except (OSError, http.client.HTTPException) as problem:
        cause, remedy = _no_connection(address, url, problem)
    raise _failure(cause, remedy)


def _no_connection(address: Address, url: str, problem: Exception) -> tuple[str, str]:
    """Cause and remedy of a connection that was not made, or broke."""
    host = urlsplit(address.base_url).netloc
    if isinstance(problem, ConnectionRefusedError):
        return (
            f"{host} refused the connection",
            "start the server, or correct host and port in engine.base_url",
        )
    if isinstance(problem, socket.gaierror):
        return f"the host of {host} is not known", "correct the host in engine.base_url"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {host} is not trusted: {problem.verify_message}",
            "name the file of its authority's certificates in the environment variable "
            "SSL_CERT_FILE",
        )
    if isinstance(problem, ssl.SSLError):
        return (
            f"{host} does not speak TLS: {problem.reason or problem}",
            "if it has no certificate, write http:// in engine.base_url",
        )
    return (
        f"{url} broke the connection: {type(problem).__name__}: {problem}",
        "see that this is an HTTP server (http:// or https://), and what its log says",
    )


def _json(address: Address, path: str, reply: Reply) -> Any:
    """The body of a good answer. Raises LaunchFailure for any other."""
    url = f"{address.base_url}{path}"
    if reply.status != HTTPStatus.OK:
        raise _failure(*_bad_status(address, url, reply))
    try:
        return reply.json()
    except ValueError:
        what = "a web page" if _is_page(reply) else "something that is no JSON"
        raise _failure(
            f"{url} answered with {what}",
            "give the address of the API itself, not of a user interface or a login page",
            _start(address, reply),
        ) from None


def _bad_status(address: Address, url: str, reply: Reply) -> tuple[str, str, str]:
    """Cause, remedy and evidence of an answer with another status than 200."""
    status = reply.status
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        # Its words are not shown: such answers repeat parts of the key.
        return (*_bad_key(address, url, status), "")
    if reply.headers.get("location"):
        place = urlsplit(reply.headers["location"])
        return (
            f"{url} redirects to {place.scheme}://{place.hostname}{place.path}",
            "give the address that it redirects to in engine.base_url",
            "",
        )
    message = "" if _is_page(reply) else _message(address, reply)
    cause = f"{url} answered HTTP {status}{f': {message}' if message else ''}"
    if status == HTTPStatus.NOT_FOUND:
        remedy = (
            "correct engine.base_url (what stands before /v1), and see that the server offers "
            "this: only completions can be measured, not chat alone"
        )
    elif status == HTTPStatus.TOO_MANY_REQUESTS:
        remedy = "it limits requests, so it cannot be measured under load: have the limit lifted"
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        remedy = "that server, or what stands before it, has a fault or is not ready: see its log"
    else:
        remedy = "see that this is an OpenAI-compatible API, and what that server's log says"
    return cause, remedy, _start(address, reply)


def _bad_key(address: Address, url: str, status: int) -> tuple[str, str]:
    variable = address.key_variable
    if not address.api_key:
        return (
            f"{url} asks for a key (HTTP {status}), and the environment variable {variable} is "
            "not set",
            f"put the server's key into {variable}, or name another variable with "
            "engine.api_key_env",
        )
    return (
        f"{url} refuses the key from the environment variable {variable} (HTTP {status})",
        f"put this server's key into {variable}, or name the variable that has it with "
        "engine.api_key_env",
    )


def _is_page(reply: Reply) -> bool:
    kind = reply.headers.get("content-type", "")
    return "html" in kind or reply.text.lstrip()[:1] == "<"


def _message(address: Address, reply: Reply) -> str:
    """The error's message, one line: OpenAI's form, its older one, or the body."""
    text: Any = reply.text
    try:
        data = json.loads(reply.text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        error = data.get("error", data)
        text = error.get("message", error) if isinstance(error, dict) else error
    return " ".join(address.hide(str(text)).split())[:MAX_QUOTED_CHARS]


def _start(address: Address, reply: Reply) -> str:
    return address.hide(reply.text.strip())[:MAX_QUOTED_CHARS]


def _failure(cause: str, remedy: str, evidence: str = "") -> LaunchFailure:
    """What is wrong with a server that is not ours is a fault of the surroundings."""
    shown = evidence.strip()[:MAX_QUOTED_CHARS]
    return LaunchFailure(Diagnosis(Verdict.INFRA, Phase.START, cause, remedy, shown))
