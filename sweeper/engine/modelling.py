"""What an engine that models another one offers besides: it knows nothing of some parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from sweeper.config.schema import WorkloadConfig
from sweeper.estimate.weights import Serve
from sweeper.hardware.facts import HardwareFacts
from sweeper.space.model import Space


@dataclass(frozen=True)
class Surroundings:
    """What such an engine is told of a study, once, before its first launch.

    Attributes:
        model_config: fields of the unquantized model's config.json.
        hardware: the devices it is asked about; they need not be here.
        workload: what is sent.
        serve: what is served for a deployment.
    """

    model_config: Mapping[str, Any]
    hardware: HardwareFacts
    workload: WorkloadConfig
    serve: Serve


@dataclass(frozen=True)
class Foreseen:
    """A study as far as it can be modelled.

    Attributes:
        space: what is left to search.
        notes: what was fixed, and why, one line each.
    """

    space: Space
    notes: tuple[str, ...] = ()


@runtime_checkable
class Modelling(Protocol):
    """An engine that models another one."""

    def check_hardware(self, hardware: HardwareFacts) -> None:
        """Raise ConfigError for devices that it has no model of. Takes no time."""
        ...

    def foresee(
        self, surroundings: Surroundings, space: Space, tell: Callable[[str], None]
    ) -> Foreseen:
        """Make ready, and take out of a space what it cannot model.

        Args:
            surroundings: of the study.
            space: what its user wants searched.
            tell: told in one line what takes time.

        Raises:
            ConfigError: the model is none that it knows.
            EngineError: it cannot be had on this machine.
        """
        ...
