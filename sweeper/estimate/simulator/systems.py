"""The GPUs that the simulator has measured operators of, by the names that people use. Pure."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from sweeper.errors import ConfigError


@dataclass(frozen=True)
class System:
    """One GPU of the simulator.

    Attributes:
        name: the simulator's own.
        words: all of them stand in a device's name (driver or configuration), in any case.
        not_words: none of them does: other devices of the same family.
        known_as: what to write in the configuration.
        memory_gib: of one device, as the simulator counts it.
        is_a100: vLLM has smaller default batches on it.
    """

    name: str
    words: tuple[str, ...]
    not_words: tuple[str, ...]
    known_as: str
    memory_gib: float
    is_a100: bool = False


_SLICE = "mig"
# The particular before the general. Only systems with vLLM tables in the pinned version.
SYSTEMS = (
    System("gb300", ("gb300",), (), "gb300", 277.5),
    System("gb200", ("gb200",), (), "gb200", 185.0),
    System("b300_sxm", ("b300",), (), "b300", 268.6),
    System("b200_sxm", ("b200",), (), "b200", 180.0),
    System("h200_sxm", ("h200",), ("nvl",), "h200", 141.0),
    System("h100_sxm", ("h100",), ("pcie", "nvl", "64gb", "94gb", "96gb"), "h100_80gb", 80.0),
    System("a100_sxm", ("a100",), ("pcie", "40gb"), "a100_80gb", 80.0, is_a100=True),
    System("l40s", ("l40s",), (), "l40s", 45.0),
    System("rtx_pro_6000_server", ("rtx", "pro", "6000"), (), "rtx_pro_6000_server", 95.6),
)


def system_of(hardware: str) -> System:
    """The simulator's system for a GPU.

    Args:
        hardware: name as in conf/hardware (``h100_80gb``), as the driver tells it
            (``NVIDIA H200``), or the simulator's own (``h200_sxm``).

    Raises:
        ConfigError: it has no tables of that GPU; names the nearest, and all.
    """
    words = set(re.split(r"[^a-z0-9]+", hardware.lower()))
    for system in SYSTEMS:
        if hardware == system.name or _is_meant(system, words):
            return system
    known = [system.known_as for system in SYSTEMS]
    near = difflib.get_close_matches(hardware.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean hardware={near[0]}? " if near else ""
    raise ConfigError(
        f"the simulator has no measured operators of the GPU {hardware!r}",
        f"{hint}it has: {', '.join(known)}",
    )


def _is_meant(system: System, words: set[str]) -> bool:
    return (
        all(word in words for word in system.words)
        and not any(word in words for word in system.not_words)
        and _SLICE not in words
    )
