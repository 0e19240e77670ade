"""Checks across fields: what types cannot say. Each finds one fault and names the way out."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlparse

from sweeper.config.engine_checks import check_engine
from sweeper.config.load_checks import ARRIVALS, LEVELS, check_load, has_limits
from sweeper.config.load_checks import KINDS as LOAD_KINDS
from sweeper.config.names import study_name_fault
from sweeper.config.quality_checks import KINDS as QUALITY_KINDS
from sweeper.config.quality_checks import check_quality
from sweeper.config.recipe_checks import check_recipes
from sweeper.config.schema import SweeperConfig
from sweeper.config.search_checks import check_confirm, check_prior, check_stop
from sweeper.config.select_checks import PREFERENCES, check_select, has_latency_limit
from sweeper.config.suggest import did_you_mean
from sweeper.config.workload_checks import DISTRIBUTIONS, KINDS, check_workload
from sweeper.errors import ConfigError

CHOICES = {
    "model.source": ("auto", "embedded", "local", "hub"),
    "hardware.kind": ("auto", "cuda", "cpu"),
    "load.kind": LOAD_KINDS,
    "load.levels": LEVELS,
    "load.arrivals": ARRIVALS,
    "workload.kind": KINDS,
    "workload.length_distribution": DISTRIBUTIONS,
    "quality.kind": QUALITY_KINDS,
    "objective.kind": ("frontier", "slo", "point", "metrics"),
    "sampler.kind": ("auto", "gp", "staged", "tpe", "nsgaii", "random", "qmc", "grid"),
    "launcher.kind": ("local",),
    "select.prefer": PREFERENCES,
}
POSITIVE = (
    "engine.start_timeout_s",
    "engine.stop_timeout_s",
    "engine.stall_timeout_s",
    "engine.hang_timeout_s",
    "engine.memory_patience_s",
    "quality.timeout_s",
    "quality.reference_tokens",
    "quality.max_prompts",
    "quality.max_loglik_drop_nats",
    "quality.request_timeout_s",
    "quality.text_tokens",
    "quality.task_limit",
    "quality.tasks_timeout_s",
    "tracking.timeout_s",
    "budget.launches",
    "budget.minutes",
    "budget.money",
    "budget.patience_launches",
    "hardware.device_count",
    "hardware.memory_gib",
    "hardware.bandwidth_gbs",
    "hardware.tflops_bf16",
    "hardware.price_per_hour",
    "sampler.startup_trials",
    "export.port",
)
NOT_NEGATIVE = (
    "engine.device_wait_s",
    "quality.written_tokens",
    "quality.few_shot",
    "sampler.seed",
    "workload.seed",
    "workload.temperature",
)
PLACES = (
    "cache_dir",
    "model.path",
    "model.draft_model",
    "engine.python",
    "engine.table",
    "workload.path",
    "tracking.uri",
)
"""Texts that may be left out, and mean something else when they are empty: this folder, say."""
LATENCY = re.compile(r"(ttft|tpot|itl|e2e)_(p50|p90|p95|p99|mean)_ms")
THROUGHPUT = (
    "output_tokens_per_s",
    "output_tokens_per_s_per_gpu",
    "output_tokens_per_s_per_user",
    "total_tokens_per_s",
    "requests_per_s",
)
GOODPUT = ("goodput_share", "goodput_requests_per_s", "goodput_tokens_per_s")
EXAMPLES = ("ttft_p95_ms", "tpot_p95_ms", "e2e_p95_ms", *THROUGHPUT, *GOODPUT, "quality")
URI_SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql", "databricks")


def check(cfg: SweeperConfig) -> None:
    """Run every check. Raises ConfigError for the first fault."""
    for one in CHECKS:
        one(cfg)


def _get(cfg: SweeperConfig, key: str) -> Any:
    value: Any = cfg
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _study(cfg: SweeperConfig) -> None:
    fault = None if cfg.study is None else study_name_fault(cfg.study)
    if fault:
        raise ConfigError(
            f"study={cfg.study}: the name {fault}",
            "use letters, digits, '.', '_' and '-', for example study=qwen7b-chat; "
            "the folder for studies is studies_dir=...",
        )
    for key in ("studies_dir", "model.name", "space.name", "engine.name", "export.host"):
        if not _get(cfg, key).strip():
            raise ConfigError(f"{key} is empty", f"give it a value: {key}=...")
    for key in PLACES:
        value = _get(cfg, key)
        if value is not None and not value.strip():
            raise ConfigError(f"{key} is empty", f"give it a value, or leave it out: {key}=null")


def _choices(cfg: SweeperConfig) -> None:
    for key, known in CHOICES.items():
        value = _get(cfg, key)
        if value not in known:
            raise ConfigError(
                f"{key}={value} is not known", did_you_mean(str(value), known, what="values")
            )


def _finite(cfg: SweeperConfig) -> None:
    for key, value in _numbers(cfg, ""):
        if not math.isfinite(value):
            raise ConfigError(f"{key}={value} is not a finite number", f"set a number: {key}=...")


def _numbers(value: Any, key: str) -> Iterator[tuple[str, float]]:
    """(dotted key, number) of every fraction in it; items of a list stand under the list's key."""
    if dataclasses.is_dataclass(value):
        for attribute in dataclasses.fields(value):
            yield from _numbers(getattr(value, attribute.name), f"{key}.{attribute.name}")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(inner, f"{key}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, key)
    elif isinstance(value, float):
        yield key.lstrip("."), value


def _ranges(cfg: SweeperConfig) -> None:
    for key in POSITIVE:
        value = _get(cfg, key)
        if value is not None and value <= 0:
            unlimited = " (null means no limit)" if key.startswith("budget.") else ""
            raise ConfigError(f"{key}={value} must be above 0", f"set {key}=1 or more{unlimited}")
    for key in NOT_NEGATIVE:
        if (_get(cfg, key) or 0) < 0:
            raise ConfigError(f"{key}={_get(cfg, key)} is negative", f"set {key}=0 or more")


def _budget(cfg: SweeperConfig) -> None:
    budget = cfg.budget
    if budget.launches is None and budget.minutes is None and budget.money is None:
        raise ConfigError(
            "budget has no limit of any kind", "set budget.launches=20 or budget.minutes=60"
        )
    if budget.money is not None and cfg.hardware.price_per_hour is None:
        raise ConfigError(
            f"budget.money={budget.money:g} needs a price",
            "set hardware.price_per_hour=..., the price of one device for an hour",
        )


def _objective(cfg: SweeperConfig) -> None:
    objective = cfg.objective
    if objective.kind == "slo" and not has_latency_limit(cfg.select.slo):
        raise ConfigError(
            "objective=slo needs a latency promise", "set for example select.slo.ttft_p95_ms=500"
        )
    _objective_metrics(cfg)


def _objective_metrics(cfg: SweeperConfig) -> None:
    objective = cfg.objective
    if not LATENCY.fullmatch(objective.latency_metric):
        raise _unknown_metric("objective.latency_metric", objective.latency_metric)
    if objective.throughput_metric not in THROUGHPUT:
        raise _unknown_metric("objective.throughput_metric", objective.throughput_metric)
    if objective.kind != "metrics":
        return
    if not objective.metrics:
        raise ConfigError(
            "objective.metrics is empty",
            "name what to search for: 'objective.metrics=[+output_tokens_per_s,-ttft_p95_ms]'",
        )
    for signed in objective.metrics:
        _signed_metric(signed)
        if signed[1:] in GOODPUT and not has_limits(cfg.load.goodput):
            raise ConfigError(
                f"objective.metrics has {signed}, but no limit says which requests are good",
                "set for example load.goodput.ttft_ms=500 load.goodput.tpot_ms=50",
            )
        if signed[1:] == "quality" and cfg.quality.kind == "none":
            raise ConfigError(
                f"objective.metrics has {signed}, but quality=none measures no quality",
                f"leave {signed} out of objective.metrics, or measure it: quality=agreement",
            )


def _signed_metric(signed: str) -> None:
    if signed[:1] not in ("+", "-"):
        raise ConfigError(
            f"objective.metrics: {signed} has no sign",
            f"write +{signed} if more is better, -{signed} if less is",
        )
    name = signed[1:]
    if not (LATENCY.fullmatch(name) or name in THROUGHPUT or name in EXAMPLES):
        raise _unknown_metric("objective.metrics", name)


def _unknown_metric(key: str, name: str) -> ConfigError:
    return ConfigError(
        f"{key}: there is no metric {name}", did_you_mean(name, EXAMPLES, what="metrics")
    )


def _hardware(cfg: SweeperConfig) -> None:
    capability = cfg.hardware.compute_capability
    if capability is not None and (len(capability) != 2 or min(capability) < 0):
        raise ConfigError(
            f"hardware.compute_capability={capability} is not [major, minor]",
            "for example hardware.compute_capability=[9,0]",
        )
    if cfg.hardware.kind == "cuda" and cfg.hardware.memory_gib is None:
        raise ConfigError(
            f"hardware={cfg.hardware.name} describes a GPU without its memory",
            "set hardware.memory_gib=..., or hardware=auto for this machine",
        )


def _tracking(cfg: SweeperConfig) -> None:
    uri = cfg.tracking.uri
    if uri is None:
        return
    scheme = urlparse(uri).scheme.split("+")[0]
    if scheme not in URI_SCHEMES:
        raise ConfigError(
            f"tracking.uri={uri} is not a tracking store that MLflow still writes to",
            "give a database or a server: sqlite:////abs/path/mlflow.db or http://host:5000; "
            "null keeps it under studies_dir",
        )


def _export(cfg: SweeperConfig) -> None:
    if cfg.export.port > 65535:
        raise ConfigError(f"export.port={cfg.export.port} is not a port", "set export.port=8000")
    if not cfg.export.targets:
        raise ConfigError("export.targets is empty", "set for example export.targets=[vllm]")


CHECKS: tuple[Callable[[SweeperConfig], None], ...] = (
    _study,
    _choices,
    _finite,
    _ranges,
    _budget,
    check_load,
    check_workload,
    check_engine,
    check_recipes,
    check_quality,
    check_prior,
    check_confirm,
    check_stop,
    check_select,
    _objective,
    _hardware,
    _tracking,
    _export,
)
