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
    """

    elsewhere: bool = False
    takes_batches: bool = False


NATURES = {
    "openai": Nature(elsewhere=True),
    "vllm_offline": Nature(takes_batches=True),
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
    if nature.takes_batches:
        _check_batches(cfg)
    elif cfg.load.kind == BATCH:
        raise ConfigError(
            f"load.kind=batch gives all requests to the engine at once, and engine="
            f"{cfg.engine.name} is driven request by request",
            f"use load=closed, or an engine for batches: engine={_names('takes_batches')}",
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
