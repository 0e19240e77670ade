"""Gathers every fact of this machine, what takes time side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from sweeper.config.recipe_fields import TOOLS
from sweeper.config.schema import SweeperConfig
from sweeper.doctor import (
    gather_devices,
    gather_engine,
    gather_host,
    gather_outside,
    gather_places,
)
from sweeper.doctor.facts import Facts, Wanted
from sweeper.doctor.needs import NEEDS, Needs
from sweeper.errors import ModelError
from sweeper.models import embedded, hub
from sweeper.models.cache import cache_dir
from sweeper.models.resolve import facts_only, short_name, source_of
from sweeper.toolchain.environment import find_uv

_GIB = 2**30
_BYTES_16_BIT = 2


def gather(cfg: SweeperConfig, *, limit_s: float, deep: bool) -> Facts:
    """Everything that the checks judge.

    Args:
        cfg: what the study would be.
        limit_s: how long the engine's interpreter may take for its imports.
        deep: whether it also imports the engine.
    """
    studies, cache = Path(cfg.studies_dir).expanduser().absolute(), cache_dir(cfg)
    wanted = wants(cfg, cache)
    with ThreadPoolExecutor(max_workers=4) as pool:
        engine = pool.submit(
            gather_engine.look, cfg.engine.python, wanted.needs, limit_s=limit_s, deep=deep
        )
        outside = pool.submit(gather_outside.look, cfg, wanted)
        devices = pool.submit(gather_devices.look)
        orphans = pool.submit(gather_places.orphans, studies)
        return Facts(
            wanted=wanted,
            host=gather_host.look(studies),
            devices=devices.result(),
            engine=engine.result(),
            folders=gather_places.folders(studies, cache),
            outside=outside.result(),
            orphans=orphans.result(),
            uv=find_uv(),
        )


def wants(cfg: SweeperConfig, cache: Path) -> Wanted:
    """What the study asks for; what is wrong with its model is one of the facts."""
    made = [name for name, recipe in cfg.quantize.recipes.items() if recipe.tool in TOOLS]
    asked = Wanted(
        engine=cfg.engine.name,
        needs=NEEDS.get(cfg.engine.name, Needs()),
        model=cfg.model.path or short_name(cfg.model),
        kind=cfg.hardware.kind,
        streams=max([*cfg.load.concurrency, 1]),
        recipes=() if cfg.quantize.python else tuple(made),
        eager=_is_eager(cfg),
        python=cfg.engine.python is not None,
    )
    try:
        source, facts = source_of(cfg.model), facts_only(cfg.model)
    except ModelError as error:
        return replace(asked, model_error=str(error))
    count = facts.parameters if facts is not None else 0
    return replace(
        asked,
        source=source,
        model_here=_is_here(cfg, source, cache),
        weights_gib=count * _BYTES_16_BIT / _GIB if count else None,
    )


def _is_eager(cfg: SweeperConfig) -> bool:
    """Whether no launch compiles kernels."""
    return True in (cfg.engine.args.get("enforce_eager"), cfg.space.fixed.get("enforce_eager"))


def _is_here(cfg: SweeperConfig, source: str, cache: Path) -> bool:
    """Whether the weights are on this machine."""
    if source == "embedded":
        return (cache / "models" / embedded.lookup(cfg.model.name).folder_name).is_dir()
    if source == "hub":
        snapshot = hub.cached_snapshot(cfg.model.path or "", cfg.model.revision)
        return snapshot is not None and hub.has_weights(snapshot)
    return True
