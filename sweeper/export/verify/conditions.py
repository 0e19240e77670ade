"""What is not as it was when the promise was measured: engine, machine, arguments in effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.config.schema import HardwareConfig
from sweeper.engine.comparison import ineffective
from sweeper.engine.protocol import Engine
from sweeper.export.verify.files import Exported, Pair
from sweeper.export.verify.outcome import Argument
from sweeper.hardware.detect import resolve, to_manifest

_MACHINE = ("kind", "name", "device_count", "driver", "cuda", "cpu_model", "cpu_cores")
_ENGINE = ("name", "version", "distribution", "device")
_SIZES = frozenset({"num_kv_blocks", "num_cpu_blocks", "kv_cache_tokens"})
"""What an engine makes of the memory that it finds: different from launch to launch."""
_BUSY_SHARE = 0.5


def changed_conditions(
    manifest: Mapping[str, Any], engine: Engine, hardware: HardwareConfig
) -> dict[str, Pair]:
    """Engine and machine: name → (when it was measured, now)."""
    facts = engine.facts()
    now = {name: getattr(facts, name) for name in _ENGINE} | dict(facts.details)
    told = manifest.get("engine", {})
    then = {name: told.get(name) for name in _ENGINE} | dict(told.get("details", {}))
    found = _differ("engine", then, now)
    machine = to_manifest(resolve(hardware))
    before = {name: manifest.get("hardware", {}).get(name) for name in _MACHINE}
    return found | _differ("hardware", before, {name: machine.get(name) for name in _MACHINE})


def changed_effects(
    then: Mapping[str, Any], now: Mapping[str, Any], exported: Exported
) -> dict[str, Pair]:
    """Arguments that nobody gave and that are in effect now as they were not. Pure.

    Args:
        then, now: manifests.
        exported: whose own flags are left out: they are compared with what was asked.
    """
    before, after = then.get("effective_args", {}), now.get("effective_args", {})
    shared = {*before} & {*after} - _SIZES - {*exported.flags}
    return {
        f"in effect: {name}": (before[name], after[name])
        for name in sorted(shared)
        if before[name] != after[name] and ineffective({name: before[name]}, after)
    }


def busy(load_average: float, cores: int) -> str:
    """A sentence where other programs use the processor; empty where they hardly do. Pure.

    Args:
        load_average: processes that ran or wanted to, over the last minute, before the start.
        cores: of the machine.
    """
    if load_average < _BUSY_SHARE * cores:
        return ""
    return (
        f"Other programs used this machine when it began: {load_average:.1f} of them wanted its "
        f"{cores} cores, over the last minute."
    )


def arguments(exported: Exported, effective: Mapping[str, Any] | None) -> tuple[Argument, ...]:
    """Every exported flag beside what is in effect; none where no server came up to ask. Pure."""
    if effective is None:
        return ()
    return tuple(
        Argument(name, value, effective.get(name), name in effective)
        for name, value in sorted(exported.flags.items())
    )


def _differ(room: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Pair]:
    """What is known of both and not the same."""
    pairs = {name: (then.get(name), now.get(name)) for name in sorted({*then, *now})}
    return {f"{room}.{name}": pair for name, pair in pairs.items() if _is_change(pair)}


def _is_change(pair: Pair) -> bool:
    return None not in pair and pair[0] != pair[1]
