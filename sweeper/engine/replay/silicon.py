"""Measured rows as a CSV, one deployment at one number of streams a row. Pure.

The columns are those in which aiconfigurator (Apache-2.0) keeps its end-to-end measurements: what
was served (`model_path`, `system`, `isl`, `osl`, `backend`), how (`gemm_quant_mode`, `tp_size`,
…; `prefill_…` and `decode_…` where the two run apart) and `silicon_ttft_ms`, `silicon_tpot_ms`. The
number of streams stands in the text of `silicon_data_source`.

Rows are only comparable within a *group*: one model, system, pair of lengths and backend. Streams
are load levels, so that a deployment has a curve, unless `batch` asks for one deployment a batch
size. Throughput is not in the source: it follows from the two latencies by Little's law, as a
closed loop of c streams ends c / E2E requests a second. The source does not say which statistic
its latencies are; they are taken for means, which that law needs.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweeper.engine.replay.contents import Contents, rows_of_points
from sweeper.engine.replay.lines import READABLE
from sweeper.engine.replay.rows import CLOSED, Deployment, Level
from sweeper.errors import ConfigError
from sweeper.redaction import shown

CsvRow = Mapping[str, str]

NEEDED = ("model_path", "system", "isl", "osl", "backend", "silicon_ttft_ms", "silicon_tpot_ms")
SOURCE = "silicon_data_source"
STREAMS = re.compile(r"silicon_concurrency=(\d+)")
MEASURED_ON = re.compile(r"measured=([0-9T:.Z-]+)")
UNQUANTIZED = "bf16"
BATCH_SIZE = "flag.batch_size"
LEVEL, PARAMETER = "level", "parameter"

SIZES = {
    "tp_size": "tensor_parallel_size",
    "attention_dp_size": "data_parallel_size",
    "moe_tp_size": "flag.moe_tp_size",
    "moe_ep_size": "flag.moe_ep_size",
    **{
        f"{role}_{name}": f"flag.{role}_{name}"
        for role in ("prefill", "decode")
        for name in (
            "num_workers",
            "tp_size",
            "attention_dp_size",
            "moe_tp_size",
            "moe_ep_size",
        )
    },
}
"""Column → parameter. (Every pipeline of the source has one stage.)"""

WORDS = {"mode": "flag.mode", "backend_version": "flag.backend_version"}
SHOWN_GROUPS = 15


@dataclass(frozen=True)
class Group:
    """Rows that may be compared.

    Attributes:
        name: ``model/system/ISLxOSL/backend``.
        rows: of the file.
    """

    name: str
    rows: Sequence[CsvRow]


def read_silicon(path: Path, text: str, *, group: str = "", batch: str = LEVEL) -> Contents:
    """Rows of one group.

    Args:
        path: of the file, for messages.
        text: its content.
        group: its name, or words of it that fit no other.
        batch: ``level`` or ``parameter``: what a batch size is.

    Raises:
        ConfigError: no such CSV, or no one group of that name.
    """
    found = _chosen(path, groups_of(path, text), group)
    points = list(_points(found.rows, batch))
    first = found.rows[0]
    unknown = len(found.rows) - len(points)
    notes = (f"{unknown} rows that do not say their number of streams",) if unknown else ()
    return Contents(
        rows=rows_of_points(points),
        source=f"{path.name}, {found.name}",
        model=first["model_path"],
        hardware=first["system"],
        input_tokens=int(first["isl"]),
        output_tokens=int(first["osl"]),
        engine=first["backend"],
        notes=notes,
    )


def groups_of(path: Path, text: str) -> list[Group]:
    """All groups of a file, the largest first.

    Raises:
        ConfigError: it lacks a column.
    """
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
    if missing:
        raise ConfigError(f"engine.table={path} has no column {missing[0]}", READABLE)
    rows: dict[str, list[CsvRow]] = {}
    for row in reader:
        rows.setdefault(_group_name(row), []).append(row)
    return sorted(
        (Group(*item) for item in rows.items()), key=lambda one: (-len(one.rows), one.name)
    )


def _group_name(row: CsvRow) -> str:
    model = row["model_path"].rpartition("/")[2]
    return shown(f"{model}/{row['system']}/{row['isl']}x{row['osl']}/{row['backend']}")


def _chosen(path: Path, groups: Sequence[Group], asked: str) -> Group:
    exact = [one for one in groups if one.name == asked]
    words = asked.lower().replace(",", " ").split()
    fitting = exact or [one for one in groups if all(word in one.name.lower() for word in words)]
    if len(fitting) == 1:
        return fitting[0]
    what = f"engine.options.group={asked}: " if asked else ""
    if not fitting:
        raise ConfigError(f"{what}no group of {path.name} is called so", _listed(groups))
    raise ConfigError(
        f"{what}{path.name} has {len(fitting)} groups of rows that may be compared"
        f"{' and fit this' if asked else ''}, and a study searches one",
        _listed(fitting),
    )


def _listed(groups: Sequence[Group]) -> str:
    lines = [f"\n    {one.name}  ({_size(one)})" for one in groups[:SHOWN_GROUPS]]
    more = len(groups) - SHOWN_GROUPS
    rest = f"\n    and {more} smaller ones; words of a name narrow the list" if more > 0 else ""
    return f"choose one with engine.options.group=NAME:{''.join(lines)}{rest}"


def _size(group: Group) -> str:
    rows = rows_of_points(_points(group.rows, LEVEL))
    return f"{len(rows)} deployments, {sum(len(row.levels) for row in rows)} points"


def _points(rows: Sequence[CsvRow], batch: str) -> Iterator[tuple[Deployment, Level, int]]:
    """The points of rows that say their streams; of repeated ones the latest comes last."""
    for row in sorted(rows, key=_measured_on):
        streams = STREAMS.search(row.get(SOURCE, ""))
        if streams is None:
            continue
        deployment, devices = _deployment(row), _devices(row)
        size = row.get("batch_size") or row.get("decode_batch_size")
        if batch == PARAMETER and size:
            deployment[BATCH_SIZE] = _whole(size)
        yield deployment, _level(row, int(streams.group(1)), devices), devices


def _measured_on(row: CsvRow) -> str:
    found = MEASURED_ON.search(row.get(SOURCE, ""))
    return found.group(1)[:10] if found else ""


def _deployment(row: CsvRow) -> dict[str, str | int]:
    deployment: dict[str, str | int] = {
        name: _whole(row[column]) for column, name in SIZES.items() if row.get(column)
    }
    deployment |= {name: row[column] for column, name in WORDS.items() if row.get(column)}
    precision = row.get("gemm_quant_mode") or row.get("precision") or UNQUANTIZED
    if precision != UNQUANTIZED:
        deployment["quantization"] = precision
    return deployment


def _devices(row: CsvRow) -> int:
    """Devices of all workers: attention is what spreads over every one of them."""
    if row.get("tp_size"):
        return _size_of(row, "")
    return sum(
        _size_of(row, f"{role}_") * _whole(row.get(f"{role}_num_workers") or "1")
        for role in ("prefill", "decode")
    )


def _size_of(row: CsvRow, prefix: str) -> int:
    count = 1
    for column in ("tp_size", "pp_size", "attention_dp_size"):
        count *= _whole(row.get(f"{prefix}{column}") or "1")
    return count


def _level(row: CsvRow, streams: int, devices: int) -> Level:
    ttft_ms, tpot_ms = float(row["silicon_ttft_ms"]), float(row["silicon_tpot_ms"])
    output_tokens = int(row["osl"])
    e2e_ms = ttft_ms + tpot_ms * (output_tokens - 1)
    tokens_per_s = streams * output_tokens / e2e_ms * 1000
    metrics = {
        "ttft_mean_ms": ttft_ms,
        "tpot_mean_ms": tpot_ms,
        "e2e_mean_ms": e2e_ms,
        "output_tokens_per_s": tokens_per_s,
        "output_tokens_per_s_per_gpu": tokens_per_s / devices,
        "output_tokens_per_s_per_user": tokens_per_s / streams,
        "input_tokens_mean": float(row["isl"]),
        "output_tokens_mean": float(output_tokens),
        "achieved_concurrency": float(streams),
    }
    return Level(CLOSED, streams, None, metrics)


def _whole(text: str) -> int:
    return int(float(text))
