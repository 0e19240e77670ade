"""Asks whether MLflow, a model hub and a running server answer, each within seconds."""

from __future__ import annotations

import os
import socket
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from sweeper.config.schema import SweeperConfig
from sweeper.config.secrets import completed_uri
from sweeper.config.server_address import plain_address
from sweeper.doctor.facts import Answer, OutsideFacts, Wanted
from sweeper.errors import ConfigError
from sweeper.models import hub
from sweeper.tracking.mlflow_client import shown_uri

LIMIT_S = 3.0
HUB = "https://huggingface.co"
_HTTP = {"http": HTTPConnection, "https": HTTPSConnection}
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


def look(cfg: SweeperConfig, wanted: Wanted) -> OutsideFacts:
    """What is reached over the network."""
    uri = completed_uri(cfg.tracking.uri, os.environ) or ""
    is_remote = "://" in uri and not uri.startswith(("sqlite:", "file:"))
    needs_hub = wanted.source == "hub" and wanted.needs.checkpoint and not wanted.model_here
    offline = hub.is_offline()
    return OutsideFacts(
        mlflow=answer(uri, "/health") if is_remote and cfg.tracking.enabled else None,
        mlflow_off=not cfg.tracking.enabled,
        mlflow_address=shown_uri(uri),
        hub=_hub() if needs_hub and not offline else None,
        offline=offline,
        hub_cache=str(hub.hub_cache()),
        hub_token=bool(os.environ.get("HF_TOKEN")),
        server=_server(cfg) if wanted.needs.address else None,
    )


def answer(uri: str, path: str, key: str = "") -> Answer:
    """Whether somebody answers: by HTTP where that is spoken, else whether a connection is taken.

    Args:
        uri: address; a user and password in it are not shown, nor sent.
        path: asked for over HTTP, below the address's own.
        key: bearer token, sent where it is not empty.
    """
    shown = shown_uri(uri)
    try:
        split = urlsplit(uri)
        scheme = split.scheme.partition("+")[0]
        port = split.port or _PORTS.get(scheme)
        if split.hostname is None or port is None:
            return Answer(shown, "the address has no host or port")
        if scheme in _HTTP:
            return Answer(shown, status=_status(split, port, path, key))
        socket.create_connection((split.hostname, port), timeout=LIMIT_S).close()
    except (OSError, ValueError, HTTPException) as error:
        return Answer(shown, getattr(error, "strerror", None) or str(error) or type(error).__name__)
    return Answer(shown)


def _status(split: SplitResult, port: int, path: str, key: str) -> int:
    connection = _HTTP[split.scheme](split.hostname or "", port, timeout=LIMIT_S)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connection.request("GET", split.path.rstrip("/") + path, headers=headers)
        return int(connection.getresponse().status)
    finally:
        connection.close()


def _hub() -> Answer | None:
    """Whether the hub can be connected to; not asked where a proxy stands between."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return None
    endpoint = os.environ.get("HF_ENDPOINT") or HUB
    try:
        split = urlsplit(endpoint)
        port = split.port or _PORTS.get(split.scheme, 443)
        socket.create_connection((split.hostname or "", port), timeout=LIMIT_S).close()
    except (OSError, ValueError) as error:
        return Answer(endpoint, getattr(error, "strerror", None) or str(error))
    return Answer(endpoint)


def _server(cfg: SweeperConfig) -> Answer | None:
    if cfg.engine.base_url is None:
        return None
    try:
        address = plain_address(cfg.engine.base_url)
    except ConfigError as error:
        return Answer(shown_uri(cfg.engine.base_url), error.message)
    return answer(address, "/v1/models", os.environ.get(cfg.engine.api_key_env, ""))
