"""Points of a simulator as JSON lines, one deployment at one load level a line. Pure.

Keys: ``tp``, ``ms`` (max_num_seqs), ``mbt`` (max_num_batched_tokens), ``q`` (precision of the
matrix products), ``mf`` (memory fraction), ``conc``, ``thr`` (output tokens/s per GPU), ``p95``
(E2E, ms), ``ttft`` and ``tpot`` (medians, ms).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sweeper.engine.replay.contents import Contents, finite, rows_of_points
from sweeper.engine.replay.lines import bad_line
from sweeper.engine.replay.rows import CLOSED, Deployment, Level

KEYS = frozenset({"tp", "ms", "mbt", "q", "mf", "conc", "thr"})
UNQUANTIZED = "bf16"


def read_simulated(path: Path, lines: Iterable[tuple[int, Mapping[str, Any]]]) -> Contents:
    """Rows of a simulator's points.

    Raises:
        ConfigError: a line without one of the keys.
    """
    stem = path.name.partition(".")[0]
    _, _, named = stem.partition("simulated_")
    model, _, hardware = named.rpartition("_")
    return Contents(
        rows=rows_of_points(_points(path, lines)),
        source=f"{path.name}, figures of a simulator",
        is_predicted=True,
        model=model or None,
        hardware=hardware or None,
        engine="simulated",
    )


def _points(
    path: Path, lines: Iterable[tuple[int, Mapping[str, Any]]]
) -> Iterator[tuple[Deployment, Level, int]]:
    for number, line in lines:
        missing = sorted(KEYS - set(line))
        if missing:
            raise bad_line(path, number, f"has no {missing[0]}")
        devices = int(line["tp"])
        deployment = {
            "tensor_parallel_size": devices,
            "max_num_seqs": line["ms"],
            "max_num_batched_tokens": line["mbt"],
            "gpu_memory_utilization": line["mf"],
        }
        if line["q"] != UNQUANTIZED:
            deployment["quantization"] = line["q"]
        metrics = {
            "output_tokens_per_s_per_gpu": line["thr"],
            "output_tokens_per_s": line["thr"] * devices,
            "e2e_p95_ms": line.get("p95"),
            "ttft_p50_ms": line.get("ttft"),
            "tpot_p50_ms": line.get("tpot"),
            "achieved_concurrency": line["conc"],
        }
        yield deployment, Level(CLOSED, int(line["conc"]), None, finite(metrics)), devices
