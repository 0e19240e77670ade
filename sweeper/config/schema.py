"""The typed shape of the configuration: one dataclass a group, units in the names.

Hydra composes `conf/` over these classes, so a wrong key or type is refused before anything
starts.
Fields whose inside is free by nature (engine flags, space parameters) are plain dictionaries and
are checked by the room that reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sweeper.config.schema_quality import QualityConfig, QuantizeConfig, RecipeConfig
from sweeper.config.schema_search import ConfirmConfig, PriorConfig, StopConfig
from sweeper.config.schema_select import SelectConfig, SloConfig

__all__ = [
    "ConfirmConfig",
    "PriorConfig",
    "QualityConfig",
    "QuantizeConfig",
    "RecipeConfig",
    "SelectConfig",
    "SloConfig",
    "StopConfig",
    "SweeperConfig",
]


@dataclass
class ModelConfig:
    """Which model is served. `path` is a local folder or a hub id; None means embedded."""

    name: str = "smollm2"
    path: str | None = None
    source: str = "auto"
    """auto | embedded | local | hub"""
    revision: str | None = None
    licence: str | None = None
    trust_remote_code: bool = False
    dtype: str | None = None
    """Precision given to the engine in every deployment; None leaves the engine's own choice."""
    facts: dict[str, Any] = field(default_factory=dict)
    """config.json's fields, for arithmetic without the model at hand (`estimate` offline)."""
    checkpoints: dict[str, str] = field(default_factory=dict)
    """Published quantized checkpoints: value of `quantization` → path or hub id."""
    draft_model: str | None = None
    """Path or hub id used by `speculative=draft_model`."""
    draft_facts: dict[str, Any] = field(default_factory=dict)
    """The draft model's config.json fields, for the vocabulary check."""
    eagle_model: str | None = None
    """Path or hub id used by `speculative=eagle`."""


@dataclass
class HardwareConfig:
    """`kind: auto` reads this machine; anything else describes one that is not at hand."""

    name: str = "auto"
    kind: str = "auto"
    """auto | cuda | cpu"""
    device_count: int | None = None
    """Devices the study may use; None means all that are visible."""
    memory_gib: float | None = None
    compute_capability: list[int] | None = None
    bandwidth_gbs: float | None = None
    tflops_bf16: float | None = None
    price_per_hour: float | None = None
    """Price of one device for one hour, in `currency`."""
    currency: str = "USD"


@dataclass
class EngineConfig:
    """How the engine is started, whatever the deployment."""

    name: str = "vllm"
    python: str | None = None
    """Interpreter the engine is installed in; None means the tuner's own."""
    args: dict[str, Any] = field(default_factory=dict)
    """Engine flags for every launch, baseline included; underscores for hyphens."""
    env: dict[str, str] = field(default_factory=dict)
    base_url: str | None = None
    """openai: where the server that is not ours answers, without `/v1`."""
    served_model: str | None = None
    """openai: the name it knows the model by; None takes the only one it serves."""
    api_key_env: str = "SWEEPER_API_KEY"
    """openai: the environment variable that holds its key; none is sent where it is not set. A key
    of another service is only sent if its variable is named here."""
    start_timeout_s: float | None = None
    """None scales with the model's size."""
    stall_timeout_s: float | None = None
    """A start in which nothing has moved for so long is hung; None scales with the start's."""
    hang_timeout_s: float | None = None
    """A server under load that has written nothing for so long is hung; None scales likewise."""
    stop_timeout_s: float = 30.0
    device_wait_s: float = 3600.0
    """How long to wait for another tuner's launch on the same devices; 0 does not wait."""
    memory_patience_s: float = 60.0
    """How long device memory may take to come to rest before a start, and back after a stop."""
    table: str | None = None
    """replay: the file, or the study's folder, whose deployments are served instead of launched."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of one engine variant only (the mock's dials, say)."""


@dataclass
class SpaceConfig:
    """What is searched. See `sweeper.space` for the form of `parameters`."""

    name: str = "cpu"
    fixed: dict[str, Any] = field(default_factory=dict)
    """Parameters with one value in every deployment, baseline included."""
    parameters: dict[str, Any] = field(default_factory=dict)
    seeds: list[Any] = field(default_factory=list)
    """Deployments tried right after the baseline, each a mapping of parameter to value."""


@dataclass
class WorkloadConfig:
    """What each request asks for. Lengths in tokens."""

    name: str = "synthetic"
    kind: str = "synthetic"
    """synthetic | shared_prefix | conversation | file | standard | trace"""
    input_tokens: int = 512
    """Length of a prompt; with a distribution its mean."""
    output_tokens: int = 128
    """Length of an output; with a distribution its mean; for `file` that of a line without one."""
    length_distribution: str = "fixed"
    """fixed | uniform | normal | lognormal"""
    input_spread: float = 0.0
    """Over the mean: half the width (uniform) or the standard deviation (normal, lognormal)."""
    output_spread: float = 0.0
    input_tokens_max: int | None = None
    """Longer prompts are drawn again; None allows four times the mean."""
    output_tokens_max: int | None = None
    prefix_tokens: int = 0
    """shared_prefix: of `input_tokens`, how many are common to a group of requests."""
    prefix_groups: int = 1
    turns: int = 1
    """conversation: requests of one user, each with all that was said before."""
    think_time_s: float = 0.0
    path: str | None = None
    """file, trace: where it lies."""
    format: str = "auto"
    """file: auto | jsonl | sharegpt; trace: auto | azure_csv | mooncake_jsonl"""
    max_requests: int | None = None
    """file, trace: only the first so many."""
    seed: int = 1
    temperature: float = 0.0
    """0 is greedy."""
    top_p: float | None = None
    top_k: int | None = None
    sampling_seed: int | None = None
    """Seed of the server's sampling; a request then leaves vLLM's fastest sampler."""
    beam_width: int = 1
    """Above 1: beam search, where the engine has it."""
    ignore_eos: bool = True


@dataclass
class GoodputConfig:
    """Limits that a single request must keep to count as good, in milliseconds; None means none."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None
    share: float = 0.99
    """Share of requests that must keep them, for `levels: slo`."""


@dataclass
class LoadConfig:
    """How hard the server is driven: a ladder of load levels on one launch."""

    name: str = "closed"
    kind: str = "closed"
    """closed | open | ramp | replay | batch, see `sweeper.load.level`"""
    levels: str = "given"
    """given: those listed; found: doubling from the first until throughput stops growing;
    slo: the highest rate that keeps the limits of `goodput`, by doubling and bisection"""
    concurrency: list[int] = field(default_factory=lambda: [1, 8, 32])
    """closed, batch: the levels."""
    rate_per_s: list[float] = field(default_factory=list)
    """open: the levels, in requests a second; ramp: the rate at the end of each."""
    start_rate_per_s: float = 0.1
    """ramp: the rate at its beginning."""
    arrivals: str = "poisson"
    """constant | poisson | gamma"""
    burstiness: float = 1.0
    """gamma: shape of the times between arrivals; below 1 they come in bursts."""
    time_scale: list[float] = field(default_factory=lambda: [1.0])
    """replay: the levels; 2 sends a trace twice as fast as it was recorded."""
    requests_per_stream: int = 4
    """closed, batch: requests of a level by its concurrency."""
    min_requests: int = 8
    duration_s: float = 60.0
    """open, ramp: a level sends what arrives in this time, `min_requests` at least."""
    repeats: int = 1
    """Times every level is driven, with prompts of its own each time; pooled into one point."""
    max_levels: int = 12
    """found, slo: launches end after so many levels."""
    min_growth_share: float = 0.05
    """found: throughput must grow by this much from one level to the next."""
    rate_tolerance_share: float = 0.05
    """slo: how near the highest good and the lowest bad rate must come."""
    goodput: GoodputConfig = field(default_factory=GoodputConfig)
    warmup_requests_per_stream: int = 1
    """Requests of one warm-up round, by stream."""
    warmup_max_rounds: int = 1
    """Rounds until two in a row take the same time; 1 does not look."""
    warmup_tolerance_share: float = 0.1
    gauges_every_s: float = 1.0
    """How often the server's queue and KV cache are looked at; 0 never."""
    request_timeout_s: float = 300.0
    level_timeout_s: float = 1800.0


@dataclass
class RecordConfig:
    """What of a measurement is kept beside its numbers."""

    text: bool = False
    """Prompts and outputs, in `trials/N/text.jsonl`. They may be private: off by default."""


@dataclass
class ObjectiveConfig:
    """What the sampler is told of a launch (all metrics are recorded whatever this says)."""

    name: str = "frontier"
    kind: str = "frontier"
    """frontier | slo | point | metrics"""
    concurrency: int | None = None
    """Load level of `point` and `metrics`; None means the ladder's highest."""
    latency_metric: str = "e2e_p95_ms"
    throughput_metric: str = "output_tokens_per_s_per_gpu"
    metrics: list[str] = field(default_factory=list)
    """For `metrics`: names with a sign, for example [+output_tokens_per_s, -ttft_p95_ms]."""


@dataclass
class SamplerConfig:
    name: str = "auto"
    kind: str = "auto"
    """auto | gp | staged | tpe | nsgaii | qmc | random | grid"""
    seed: int = 1
    startup_trials: int | None = None
    """Trials known before a sampler begins to model; None: 3 for gp, 5 for tpe and nsgaii."""


@dataclass
class BudgetConfig:
    """Whichever is reached first ends the study. None means no limit of that kind."""

    name: str = "default"
    launches: int | None = 20
    minutes: float | None = None
    money: float | None = None
    """In `hardware.currency`; needs `hardware.price_per_hour`."""
    patience_launches: int | None = None
    """The search ends when so many launches in a row gained nothing beyond noise."""


@dataclass
class TrackingConfig:
    name: str = "mlflow"
    enabled: bool = True
    uri: str | None = None
    """MLflow tracking URI; None means a SQLite file under `studies_dir`."""
    experiment: str = "sweeper"
    timeout_s: float = 10.0


@dataclass
class ExportConfig:
    name: str = "default"
    targets: list[str] = field(default_factory=lambda: ["vllm", "shell", "compose", "k8s"])
    """Files that a finished study leaves; `python -m sweeper export` writes any and all."""
    host: str = "0.0.0.0"
    port: int = 8000


@dataclass
class LauncherConfig:
    name: str = "local"
    kind: str = "local"


@dataclass
class SweeperConfig:
    """The whole configuration of a study."""

    study: str | None = None
    """Name of the study; None is derived from model, space and engine."""
    studies_dir: str = "studies"
    cache_dir: str | None = None
    """Converted models and engine caches; None means the user's cache folder."""
    model: ModelConfig = field(default_factory=ModelConfig)
    hardware: HardwareConfig = field(default_factory=HardwareConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    space: SpaceConfig = field(default_factory=SpaceConfig)
    quantize: QuantizeConfig = field(default_factory=QuantizeConfig)
    workload: WorkloadConfig = field(default_factory=WorkloadConfig)
    load: LoadConfig = field(default_factory=LoadConfig)
    record: RecordConfig = field(default_factory=RecordConfig)
    quality: QualityConfig = field(default_factory=QualityConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    prior: PriorConfig = field(default_factory=PriorConfig)
    stop: StopConfig = field(default_factory=StopConfig)
    confirm: ConfirmConfig = field(default_factory=ConfirmConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    select: SelectConfig = field(default_factory=SelectConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    launcher: LauncherConfig = field(default_factory=LauncherConfig)
