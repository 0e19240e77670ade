"""What an engine asks of the other groups: its space, its kind of load, how output is judged.

The table names only engines that differ from the rule: an engine is started here, is driven over
HTTP, and its output is scored over HTTP too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sweeper.config.schema import SweeperConfig
from sweeper.config.server_address import EXAMPLE, plain_address
from sweeper.errors import ConfigError

BATCH = "batch"
NEEDS_ADDRESS = "drives a server that is already there, and needs its address"


@dataclass(frozen=True)
class Nature:
    """How an engine differs.

    Attributes:
        elsewhere: the server is not started here: it has an address, and its deployment is given.
        takes_batches: it gets all requests at once and is not driven over HTTP.
        tabled: nothing is launched: it serves a table, from which come space and load levels that
            are not given.
        simulated: nothing is launched: load levels are predicted from means.
    """

    elsewhere: bool = False
    takes_batches: bool = False
    tabled: bool = False
    simulated: bool = False


NATURES = {
    "openai": Nature(elsewhere=True),
    "vllm_offline": Nature(takes_batches=True),
    "replay": Nature(tabled=True),
    "simulate": Nature(simulated=True),
}


def check_engine(cfg: SweeperConfig) -> None:
    """Check the engine against the other groups. Raises ConfigError for the first fault."""
    nature = NATURES.get(cfg.engine.name, Nature())
    if nature.elsewhere:
        _check_elsewhere(cfg)
    elif cfg.engine.base_url is not None:
        raise ConfigError(
            f"engine={cfg.engine.name} starts a server of its own, and engine.base_url names "
            "another one",
            "leave engine.base_url out, or drive that server: engine=openai",
        )
    if nature.tabled:
        _check_tabled(cfg)
    elif cfg.engine.table is not None:
        raise ConfigError(
            f"engine={cfg.engine.name} launches deployments, and engine.table names a table of "
            "measured ones",
            "leave engine.table out, or search that table: engine=replay",
        )
    if nature.simulated:
        _check_simulated(cfg)
    if nature.takes_batches:
        _check_batches(cfg)
    elif nature.tabled:
        return  # its levels are of whatever kind the table has
    elif cfg.load.kind == BATCH:
        raise ConfigError(
            f"load.kind=batch gives all requests to the engine at once, and engine="
            f"{cfg.engine.name} is driven request by request",
            f"use load=closed, or an engine for batches: engine={_names('takes_batches')}",
        )


def is_tabled(cfg: SweeperConfig) -> bool:
    """Whether the engine serves a table instead of launching anything."""
    return NATURES.get(cfg.engine.name, Nature()).tabled


def _check_tabled(cfg: SweeperConfig) -> None:
    if not cfg.engine.table:
        raise ConfigError(
            f"engine={cfg.engine.name} serves a table, and engine.table names none",
            "for example engine.table=studies/NAME (a study of yours), or engine.table=FILE.csv",
        )
    given = next((key for key in _deployment_keys(cfg) if not key.startswith("space.")), None)
    if given is not None:
        raise ConfigError(
            f"{given} is part of how a server is started, and engine={cfg.engine.name} starts none",
            f"leave {given} out: the table's deployments are what they are",
        )


def _check_elsewhere(cfg: SweeperConfig) -> None:
    if not cfg.engine.base_url:
        raise ConfigError(f"engine={cfg.engine.name} {NEEDS_ADDRESS}", EXAMPLE)
    plain_address(cfg.engine.base_url)
    given = next(_deployment_keys(cfg), None)
    if given is not None:
        raise ConfigError(
            f"{given} is part of how a server is started, and the server of engine="
            f"{cfg.engine.name} was not started here: only load and workload can be varied",
            f"{'take space=none' if given.startswith('space.') else f'leave {given} out'}; to try "
            "deployments, let them be started here: engine=vllm",
        )


def _deployment_keys(cfg: SweeperConfig) -> Iterator[str]:
    """Settings that only a launch could carry out."""
    for place in ("parameters", "fixed"):
        yield from (f"space.{place}.{name}" for name in getattr(cfg.space, place))
    for place in ("args", "env"):
        yield from (f"engine.{place}.{name}" for name in getattr(cfg.engine, place))
    if cfg.model.dtype is not None:
        yield "model.dtype"


def _check_simulated(cfg: SweeperConfig) -> None:
    name, load = cfg.engine.name, cfg.load
    if load.kind not in {"closed", "open"} or (
        load.kind == "open" and load.arrivals not in {"constant", "poisson"}
    ):
        kind = f"load.arrivals={load.arrivals}" if load.kind == "open" else f"load.kind={load.kind}"
        raise ConfigError(
            f"engine={name} predicts streams and steady request rates, and no {kind}",
            "use load=closed, load=open or load=constant",
        )
    if load.levels == "slo":
        raise ConfigError(
            f"load.levels=slo counts single requests that keep a limit, and engine={name} has "
            "percentiles alone",
            "use load=closed with select.slo, which goes by the predicted P95",
        )
    if cfg.quality.kind != "none":
        raise ConfigError(
            f"quality.kind={cfg.quality.kind} judges what a deployment writes, and engine={name} "
            "writes nothing",
            "use quality=none here, and judge the same deployment with engine=vllm",
        )


def _check_batches(cfg: SweeperConfig) -> None:
    name = cfg.engine.name
    if cfg.load.kind != BATCH:
        raise ConfigError(
            f"engine={name} takes whole batches, and load.kind={cfg.load.kind} sends single "
            "requests",
            "use load=batch; to drive a server with single requests: engine=vllm",
        )
    if cfg.load.levels == "slo":
        raise ConfigError(
            "load.levels=slo searches a request rate, and a batch has none",
            "use load.levels=given or load.levels=found",
        )
    if cfg.quality.kind != "none":
        raise ConfigError(
            f"quality.kind={cfg.quality.kind} scores output over HTTP, and engine={name} has no "
            "server",
            "use quality=none here, and judge the same deployment with engine=vllm",
        )
    _check_batch_workload(cfg)


def _check_batch_workload(cfg: SweeperConfig) -> None:
    work = cfg.workload
    if work.kind == "conversation":
        raise ConfigError(
            "workload.kind=conversation waits for answers between its turns, and a batch is given "
            "at once",
            "use another workload, or engine=vllm",
        )
    if work.beam_width > 1:
        raise ConfigError(
            f"workload.beam_width={work.beam_width}: engine={cfg.engine.name} has no beam search",
            "set workload.beam_width=1, or use engine=vllm",
        )


def _names(trait: str) -> str:
    return " or ".join(name for name, nature in NATURES.items() if getattr(nature, trait))
