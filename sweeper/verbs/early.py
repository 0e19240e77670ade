"""What can be refused at once: before a model is fetched, and before anything heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass

from sweeper.config.schema import SweeperConfig
from sweeper.engine.modelling import Modelling
from sweeper.engine.protocol import Engine, Tabled
from sweeper.engine.registry import create
from sweeper.hardware import detect as hardware
from sweeper.hardware.elsewhere import elsewhere
from sweeper.hardware.facts import HardwareFacts
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
