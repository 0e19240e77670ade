"""What a table says of the study that searches it, where its user says nothing.

space, load levels     the table's own, unless given
lengths of requests    the table's own, always: it was measured with them
name, hardware         from the table, unless given
objective              in metrics that the table has
quality                searched for if the table has it
"""

from __future__ import annotations

import re
from dataclasses import replace

from sweeper.config.checks import check
from sweeper.config.engine_checks import is_tabled
from sweeper.config.load_checks import LADDERS
from sweeper.config.names import MAX_STUDY_NAME, check_names
from sweeper.config.schema import (
    LoadConfig,
    ObjectiveConfig,
    QualityConfig,
    SpaceConfig,
    SweeperConfig,
)
from sweeper.engine.protocol import Tabled
from sweeper.engine.registry import create
from sweeper.engine.replay.table import Table
from sweeper.errors import ConfigError
from sweeper.models.cache import cache_dir

LATENCIES = ("e2e_p95_ms", "e2e_p90_ms", "e2e_mean_ms", "e2e_p50_ms", "tpot_p95_ms", "tpot_mean_ms")
"""What stands in for a latency that the table lacks, the nearest to a promise first."""
THROUGHPUTS = ("output_tokens_per_s_per_gpu", "output_tokens_per_s")


def filled(cfg: SweeperConfig) -> SweeperConfig:
    """The configuration with what its table says; unchanged where the engine has no table.

    Raises:
        ConfigError: no such table, or one that lacks what the configuration asks for.
    """
    if not is_tabled(cfg):
        return cfg
    engine = create(cfg.engine, cache_dir=cache_dir(cfg))
    if not isinstance(engine, Tabled):
        raise TypeError(f"engine {cfg.engine.name} has no table")
    table, contents = engine.table, engine.table.contents
    hardware = cfg.hardware
    if hardware.name == "auto":
        devices = max(row.device_count for row in table.rows)
        hardware = replace(hardware, name=contents.hardware or "unknown", device_count=devices)
    whole = replace(
        cfg,
        engine=replace(cfg.engine, table=str(table.path.absolute())),
        study=cfg.study or _study_name(table),
        hardware=hardware,
        space=_space(cfg.space, table),
        load=_load(cfg.load, table),
        workload=replace(
            cfg.workload,
            input_tokens=contents.input_tokens or cfg.workload.input_tokens,
            output_tokens=contents.output_tokens or cfg.workload.output_tokens,
        ),
        objective=_objective(cfg.objective, table),
        quality=_with_quality(cfg, table),
    )
    _check_promise(whole, table)
    check_names(whole)
    check(whole)
    return whole


def _study_name(table: Table) -> str:
    """A table's name, and of a file that holds several the part of it."""
    text = f"replay-{table.contents.source.removeprefix('study ').partition(', figures')[0]}"
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text.replace(".csv,", "").replace(".jsonl.gz", ""))
    return plain.strip("-.")[:MAX_STUDY_NAME].rstrip(".-")


def _space(given: SpaceConfig, table: Table) -> SpaceConfig:
    if given.parameters or given.fixed:
        return given
    own = table.space
    return replace(own, name=given.name, seeds=[*own.seeds, *given.seeds])


def _load(given: LoadConfig, table: Table) -> LoadConfig:
    if getattr(given, LADDERS[given.kind]):
        return given
    kind = table.ladder[0][0]
    concurrency = [streams for _, streams, _ in table.ladder if streams is not None]
    rate_per_s = [rate for _, _, rate in table.ladder if rate is not None]
    if LADDERS[kind] == "rate_per_s":
        return replace(given, kind=kind, levels="given", rate_per_s=rate_per_s)
    return replace(given, kind=kind, levels="given", concurrency=concurrency)


def _objective(given: ObjectiveConfig, table: Table) -> ObjectiveConfig:
    lacking = [name[1:] for name in given.metrics if name[1:] not in {*table.metrics, "quality"}]
    if lacking:
        raise _lacks("objective.metrics", lacking[0], table)
    return replace(
        given,
        latency_metric=_or_nearest("latency_metric", given.latency_metric, LATENCIES, table),
        throughput_metric=_or_nearest(
            "throughput_metric", given.throughput_metric, THROUGHPUTS, table
        ),
    )


def _or_nearest(key: str, asked: str, others: tuple[str, ...], table: Table) -> str:
    """The metric, or what stands in for it; the study's objective says which it is."""
    found = next((name for name in (asked, *others) if name in table.metrics), None)
    if found is None:
        raise _lacks(f"objective.{key}", asked, table)
    return found


def _check_promise(cfg: SweeperConfig, table: Table) -> None:
    for name in ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms"):
        if getattr(cfg.select.slo, name) is not None and name not in table.metrics:
            raise _lacks(f"select.slo.{name}", name, table)


def _lacks(key: str, metric: str, table: Table) -> ConfigError:
    return ConfigError(
        f"{key}: the table has no {metric}", f"it has {', '.join(sorted(table.metrics))}"
    )


def _with_quality(cfg: SweeperConfig, table: Table) -> QualityConfig:
    wanted = cfg.engine.options.get("quality", True)
    has = table.has_quality and wanted
    return replace(cfg.quality, kind="agreement" if has else "none")
