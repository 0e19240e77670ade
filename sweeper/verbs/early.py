"""What can be refused at once: before a model is fetched, and before anything heavy is imported."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from sweeper.config.schema import SweeperConfig
from sweeper.engine.modelling import Modelling
from sweeper.engine.protocol import Engine, Tabled
from sweeper.engine.registry import create
from sweeper.errors import ConfigError
from sweeper.export.registry import resolve as known_targets
from sweeper.hardware import detect as hardware
from sweeper.hardware.elsewhere import elsewhere
from sweeper.hardware.facts import HardwareFacts
from sweeper.load.workload.lengths import longest
from sweeper.models import fitness
from sweeper.models.cache import cache_dir
from sweeper.models.elsewhere import facts_elsewhere
from sweeper.models.resolve import facts_only
from sweeper.quantize.published import check_paths
from sweeper.space.model import Space
from sweeper.space.parse import parse_space


@dataclass(frozen=True)
class Early:
    """What a configuration means on this machine, as far as looking costs nothing.

    `machine` is the server's, where that is not started here.
    """

    space: Space
    machine: HardwareFacts
    engine: Engine


def check_early(cfg: SweeperConfig) -> Early:
    """Read the space and the machine, and refuse a model that cannot run here.

    Raises:
        UserError: names what is wrong and the ways on.
    """
    space = parse_space(cfg.space)
    check_interpreter(cfg.engine.python)
    _check_folders(cfg)
    # What would fail in the last minute of a study is asked in its first.
    known_targets(cfg.export.targets)
    longest(cfg.workload)
    check_paths(cfg)
    engine = create(cfg.engine, cache_dir=cache_dir(cfg))
    if isinstance(engine, Tabled):
        space = engine.table.within(space)
    if not engine.needs_checkpoint:
        facts_elsewhere(cfg.model)
        return Early(space, elsewhere(cfg.hardware), engine)
    machine = hardware.resolve(cfg.hardware)
    if isinstance(engine, Modelling):
        engine.check_hardware(machine)
    facts = facts_only(cfg.model)
    if not engine.predicted:
        fitness.check_runnable(cfg.model, facts, machine, here=hardware.detect())
    return Early(space, machine, engine)


def _check_folders(cfg: SweeperConfig) -> None:
    """Refuse a file in the place of a folder. Raises ConfigError."""
    for key, path in (("studies_dir", Path(cfg.studies_dir)), ("cache_dir", cache_dir(cfg))):
        places = (path.absolute(), *path.absolute().parents)
        if (found := next(place for place in places if place.exists())).is_file():
            raise ConfigError(
                f"{key}: {found} is a file, not a folder", f"name a folder: {key}=..."
            )


def check_interpreter(python: str | None) -> None:
    """Refuse an interpreter that is not there, or is no program. Raises ConfigError."""
    if python is None or shutil.which(Path(python).expanduser()) is not None:
        return
    path = Path(python).expanduser()
    there = "cannot be executed" if path.exists() else "is not there"
    what = "is a folder" if path.is_dir() else there
    raise ConfigError(
        f"engine.python={python} {what}",
        "give the path of a Python interpreter, for example engine.python=/opt/vllm/bin/python",
    )
