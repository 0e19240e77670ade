"""Simulated figures that are kept for the next time, one JSON line each.

Nothing depends on them: a line that is torn or missing is simulated again, to the same figures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from sweeper.estimate.simulator.ask import SimulatorAsk
from sweeper.estimate.simulator.client import VERSION

Figures = Mapping[str, float]


class Kept:
    """Figures by what was asked; a refusal is an empty mapping.

    Args:
        folder: where they lie; one file a version of the simulator and model.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, dict[str, Figures]] = {}

    def read(self, asks: Sequence[SimulatorAsk]) -> list[Figures | None]:
        """The figures of each ask, None where they are not kept."""
        return [self._file(self._path(ask)).get(_key(ask)) for ask in asks]

    def add(self, asks: Sequence[SimulatorAsk], figures: Sequence[Figures]) -> None:
        """Keep them. A disk that does not take them costs time later, nothing else."""
        for ask, found in zip(asks, figures, strict=True):
            self._file(self._path(ask))[_key(ask)] = found
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            for ask, found in zip(asks, figures, strict=True):
                line = json.dumps({"ask": _key(ask), "figures": dict(found)}, allow_nan=False)
                with self._path(ask).open("a", encoding="utf-8") as file:
                    file.write(line + "\n")

    def _file(self, path: Path) -> dict[str, Figures]:
        """What a file holds, read once."""
        if path not in self._known:
            self._known[path] = dict(_lines(path))
        return self._known[path]

    def _path(self, ask: SimulatorAsk) -> Path:
        model = hashlib.sha256(ask.model_key.encode()).hexdigest()[:16]
        return self._folder / f"{VERSION}-{model}.jsonl"


def _key(ask: SimulatorAsk) -> str:
    data = asdict(ask)
    data["model_config"] = ask.model_key
    text = json.dumps(data, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _lines(path: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                entry = json.loads(line)
                found[str(entry["ask"])] = {
                    str(name): float(value) for name, value in entry["figures"].items()
                }
    return found
