"""Models on a Hugging Face hub: what is in its cache on disk, and whether the rest can be had.

The engine downloads the weights; here only config.json is fetched, so that facts are known and a
model that cannot be had is noticed before anything starts.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from sweeper.errors import ModelError
from sweeper.models.weights import weight_files

_NAME = r"[A-Za-z0-9](?:[\w.-]*[\w])?"
_HUB_ID = re.compile(rf"{_NAME}/{_NAME}")
_TRUE = {"1", "ON", "YES", "TRUE"}
_CONNECT_S = 5.0


def is_hub_id(text: str) -> bool:
    """Whether `text` has the form ``org/name``."""
    return _HUB_ID.fullmatch(text) is not None and ".." not in text and "--" not in text


def hub_cache() -> Path:
    """Where hub downloads lie on this machine, by the hub client's own variables."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named := os.environ.get(variable):
            return Path(named).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "huggingface" / "hub"


def cached_snapshot(hub_id: str, revision: str | None) -> Path | None:
    """Folder of the revision (default ``main``) in the hub cache, if its config.json is there."""
    repo = hub_cache() / f"models--{hub_id.replace('/', '--')}"
    wanted = revision or "main"
    try:
        commit = (repo / "refs" / wanted).read_text(encoding="utf-8").strip()
    except OSError:
        commit = wanted
    folder = repo / "snapshots" / commit
    return folder if (folder / "config.json").is_file() else None


def has_weights(snapshot: Path) -> bool:
    """Whether every weight file of a snapshot is in the cache."""
    try:
        return bool(weight_files(snapshot))
    except ModelError:
        return False


def is_offline() -> bool:
    """Whether the user told the hub client to stay off the network."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in _TRUE for name in names)


def fetch_snapshot(hub_id: str, revision: str | None) -> Path | None:
    """Fetch config.json alone; the snapshot's folder, or None where no hub client is installed.

    Raises:
        ModelError: no network, no such model or revision, or no permission.
    """
    if is_offline():
        raise ModelError(
            f"{hub_id} is not complete in the hub cache {hub_cache()}, and HF_HUB_OFFLINE forbids "
            "to download it",
            _other_ways("unset HF_HUB_OFFLINE"),
        )
    try:
        import huggingface_hub as client
        from huggingface_hub import constants
    except ImportError:
        return None
    _require_network(hub_id, constants.ENDPOINT)
    try:
        path = client.hf_hub_download(
            hub_id, "config.json", revision=revision, etag_timeout=_CONNECT_S
        )
    except (OSError, ValueError) as error:
        raise _explained(hub_id, revision, error) from error
    return Path(path).parent


def _require_network(hub_id: str, endpoint: str) -> None:
    """Fail in seconds where there is no network; the client itself tries for half a minute."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return
    address = urlsplit(endpoint)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=_CONNECT_S).close()
    except OSError as error:
        raise ModelError(
            f"{hub_id} is not complete in the hub cache {hub_cache()}, and {address.hostname} "
            f"cannot be reached ({error})",
            _other_ways("connect to the network"),
        ) from error


def _explained(hub_id: str, revision: str | None, error: Exception) -> ModelError:
    """The hub's refusal in one line, with what to do about it."""
    kind = type(error).__name__
    at = f" at revision {revision}" if revision else ""
    causes = {
        "GatedRepoError": (
            f"{hub_id} asks for its licence to be accepted first",
            "accept it on the model's page, then set HF_TOKEN to a token of that account",
        ),
        "RepositoryNotFoundError": (
            f"the hub knows no model {hub_id}, and there is no local folder of that name",
            "check the spelling of model.path; for a private model set HF_TOKEN",
        ),
        "RevisionNotFoundError": (
            f"{hub_id} has no revision {revision}",
            "check model.revision; leave it out for the newest",
        ),
        "RemoteEntryNotFoundError": (
            f"{hub_id}{at} has no config.json",
            "use a model in the transformers format (GGUF files are not served)",
        ),
    }
    causes["EntryNotFoundError"] = causes["RemoteEntryNotFoundError"]
    first_line = (str(error).strip().splitlines() or [kind])[0]
    message, remedy = causes.get(
        kind, (f"{hub_id}{at} cannot be read from the hub: {first_line}", _other_ways("try again"))
    )
    return ModelError(message, remedy)


def _other_ways(first: str) -> str:
    return (
        f"{first}; or copy the model to this machine and give model.path=FOLDER; "
        "or use the embedded one: model=smollm2"
    )
