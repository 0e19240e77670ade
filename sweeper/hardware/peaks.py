"""Measured peaks of a device: a short probe with the engine's torch, remembered in a file.

Data sheets know no processors and no slices of GPUs, and print what no kernel reaches. The probe
runs in a process of its own, so that torch is never loaded into the tuner's and no device memory
stays taken.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sweeper.config.schema import HardwareConfig
from sweeper.hardware.datasheet import Peaks
from sweeper.hardware.facts import HardwareFacts
from sweeper.hardware.host import read_host
from sweeper.hardware.nvidia import read_driver

PROBE = Path(__file__).with_name("peaks_probe.py")
CACHE_FILE = "peaks.json"
IDENTIFY_TIMEOUT_S = 20.0
MEASUREMENTS = 3
"""So often a device is measured before its remembered peaks are taken unasked: a neighbour on the
machine lowers a measurement, and nothing raises one, so the best of several occasions counts."""


def measured_peaks(
    python: str | None, *, device: str, cache_dir: Path | None = None, timeout_s: float = 60.0
) -> Peaks | None:
    """Peaks of this machine's device as torch reaches them.

    Args:
        python: interpreter with torch, the engine's; None means the tuner's own.
        device: ``cuda`` (the first visible GPU) or ``cpu`` (all cores this process may use).
        cache_dir: where the best answer so far for the same device, driver and torch is looked up
            and kept; None measures each time and remembers nothing.
        timeout_s: longest the probe may take.

    Returns:
        None where it cannot be measured: no torch, no such device, or a probe that broke. The
        speed of light is then taken from data sheets, or not told.
    """
    interpreter = python or sys.executable
    identity = _ask(interpreter, "identify", IDENTIFY_TIMEOUT_S)
    if identity is None or "torch" not in identity:
        return None
    key = _key(device, str(identity["torch"]))
    path = cache_dir / CACHE_FILE if cache_dir is not None else None
    known = _read(path).get(key) if path is not None else None
    best, taken = _peaks(known), _taken(known)
    if best is not None and taken >= MEASUREMENTS:
        return best
    new = _peaks(_ask(interpreter, device, timeout_s))
    if new is None:
        return best
    best = _better(best, new)
    if path is not None:
        _remember(path, key, {**asdict(best), "measurements": taken + 1})
    return best


def with_peaks(facts: HardwareFacts, peaks: Peaks | None) -> HardwareFacts:
    """The facts with these peaks in place of their own; unchanged if there are none."""
    if peaks is None:
        return facts
    return replace(
        facts,
        bandwidth_gbs=peaks.bandwidth_gbs,
        tflops_bf16=peaks.tflops_bf16,
        tflops_float32=peaks.tflops_float32,
        cache_mib=peaks.cache_mib,
        peaks_source=peaks.source,
    )


def with_measured_peaks(
    facts: HardwareFacts, cfg: HardwareConfig, *, python: str | None, cache_dir: Path | None
) -> HardwareFacts:
    """The facts with measured peaks, where there is something to measure.

    Hardware that is only described is not here, and peaks that the user gave stand.
    """
    given = cfg.bandwidth_gbs is not None or cfg.tflops_bf16 is not None
    if cfg.kind not in {"auto", "cpu"} or facts.kind not in {"cuda", "cpu"} or given:
        return facts
    return with_peaks(facts, measured_peaks(python, device=facts.kind, cache_dir=cache_dir))


def _ask(interpreter: str, what: str, timeout_s: float) -> dict[str, Any] | None:
    try:
        done = subprocess.run(
            [interpreter, "-P", str(PROBE), what],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return None
    return answer if isinstance(answer, dict) else None


def _key(device: str, torch: str) -> str:
    """What the figures depend on, in words."""
    driver = read_driver() if device == "cuda" else None
    if driver is not None and driver.gpus:
        return f"{driver.gpus[0].name} | driver {driver.version} | torch {torch}"
    host = read_host()
    return f"{device}: {host.cpu_model} | {host.cpu_cores} cores | torch {torch}"


def _peaks(answer: Any) -> Peaks | None:
    """A whole and sane answer as peaks, anything else as None."""
    if not isinstance(answer, dict):
        return None
    bandwidth, half = _positive(answer, "bandwidth_gbs"), _positive(answer, "tflops_bf16")
    if bandwidth is None or half is None:
        return None
    single, cache = _positive(answer, "tflops_float32"), _positive(answer, "cache_mib")
    return Peaks(bandwidth, half, single, cache, source="measured")


def _positive(answer: dict[str, Any], name: str) -> float | None:
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None


def _taken(known: Any) -> int:
    count = known.get("measurements") if isinstance(known, dict) else None
    return count if isinstance(count, int) and count > 0 else 0


def _better(one: Peaks | None, other: Peaks) -> Peaks:
    """The higher of each figure."""
    if one is None:
        return other
    singles = [x.tflops_float32 for x in (one, other) if x.tflops_float32 is not None]
    return replace(
        other,
        bandwidth_gbs=max(one.bandwidth_gbs, other.bandwidth_gbs),
        tflops_bf16=max(one.tflops_bf16, other.tflops_bf16),
        tflops_float32=max(singles, default=None),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _remember(path: Path, key: str, entry: dict[str, Any]) -> None:
    """Add an answer; a folder that cannot be written only costs the next study a probe."""
    text = json.dumps({**_read(path), key: entry}, indent=1, sort_keys=True)
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)
        temporary.replace(path)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
