"""The tuner speaks to the address it was given, and proves whom it speaks to."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sweeper.engine.local_http import call_url
from sweeper.load.address import ServerAddress
from sweeper.load.http import RequestFailedError, open_session, post_json
from sweeper.load.server_metrics import scrape
from sweeper.load.wire import Wire

KEY = "sk-sweeper-abcdefghijklmnop"


class Server(ThreadingHTTPServer):
    """Answers everything, redirects if told where to, and notes what came."""

    def __init__(self, redirect: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.redirect = redirect
        self.seen: list[tuple[str, str | None]] = []
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        pass  # a client that refuses our certificate


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.redirect:
            self.send_response(307)
            self.send_header("Location", self.server.redirect + self.path)
            body = b""
        else:
            self.send_response(200)
            body = b"{}"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_CONNECT = do_GET  # noqa: N815 - the names that the base class calls

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running(server: Server) -> Iterator[Server]:
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


async def through_every_client(url: str) -> list[int | str]:
    """What each of the tuner's HTTP clients makes of a server, its error if it refuses."""
    address = ServerAddress(url, "m", KEY)
    headers = {"Authorization": f"Bearer {KEY}"}
    seen: list[int | str] = []
    try:
        async with Wire(f"{url}/v1/completions", headers) as wire:
            seen.append((await wire.post(b"{}", lambda piece, now: True))[0])
    except OSError as error:
        seen.append(type(error).__name__)
    async with open_session(address, 10) as session:
        try:
            await post_json(session, address.url("/v1/completions"), {})
            seen.append(200)
        except RequestFailedError as error:
            seen.append(error.status or "no answer")
        await scrape(session, address)
    try:
        reply = await asyncio.to_thread(
            call_url, url, "/v1/models", None, api_key=KEY, timeout_s=10
        )
        seen.append(reply.status)
    except OSError as error:
        seen.append(type(error).__name__)
    return seen


async def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(Server()) as server, running(Server()) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
            monkeypatch.setenv(name.upper(), proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert await through_every_client(server.url) == [200, 200, 200]
        assert proxy.seen == []
        assert {key for _, key in server.seen} == {f"Bearer {KEY}"}


async def test_no_redirect_takes_the_key_along() -> None:
    with running(Server()) as elsewhere, running(Server(elsewhere.url)) as server:
        assert await through_every_client(server.url) == [307, 307, 307]
        assert elsewhere.seen == []
        assert len(server.seen) == 4


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    server = Server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.scheme = "https"
    with running(server):
        seen = await through_every_client(server.url)
    assert seen == ["SSLCertVerificationError", "no answer", "SSLCertVerificationError"]
    assert server.seen == []


def self_signed(folder: Path) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
