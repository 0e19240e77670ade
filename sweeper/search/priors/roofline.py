"""The roofline as a prior: what arithmetic expects of each load level. Instant, and no more.

    prompt    floor of the TTFT / share of the arithmetic peak that kernels reach + fixed cost
    step      max(reading / share of the bandwidth, arithmetic / share of the peak) + fixed cost
    request   own prompt + steps of its output + the prompts of all that run beside it

Prompts and steps take turns on one device, which the last line counts. As many requests run as the
level asks, as the scheduler admits (max_num_seqs) and as the KV cache holds; the others wait
(Little's law). The shares and the fixed cost are those of serving kernels at large; what is common
to all deployments the baseline's calibration takes out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweeper.estimate.facts import Context
from sweeper.estimate.memory import verdict
from sweeper.estimate.memory_work import batch_limits
from sweeper.estimate.speed import bounds
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.load.level import OPEN, LoadLevel
from sweeper.models.facts import ModelFacts
from sweeper.search.priors.ladder import predicted_levels
from sweeper.search.priors.prior import Deployment, PredictedPoint, Prediction, Prior, Say
from sweeper.search.priors.trust import TRUST

if TYPE_CHECKING:
    from sweeper.search.setup import StudySetup

COUNTED = frozenset(
    {
        "quantization",
        "dtype",
        "kv_cache_dtype",
        "max_num_seqs",
        "gpu_memory_utilization",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
    }
)
"""Parameters that arithmetic is done with, beside the fields of recipes; without the others many
deployments are one."""
BANDWIDTH_SHARE, COMPUTE_SHARE = 0.8, 0.5
"""Of the peaks, what kernels of a serving engine reach."""
LAYER_MS = 0.05
"""What a layer takes however little it does: its kernels are launched, and devices wait for one
another. Seen as the part of a step that neither precision nor tensor parallelism shortens."""
ROUNDS = 50
"""Of the fixed point between streams in flight and time in flight, in an open loop."""
DRAFTING = ("speculative", "num_speculative_tokens", "speculative_model", "speculative_config")


def make(setup: StudySetup, _: Say) -> Prior | str:
    """The roofline of a study's model and machine, or why there is none."""
    if setup.model.facts is None:
        return "the model's shape is not known (model.facts)"
    if not setup.hardware.bandwidth_gbs:
        return "the hardware's memory bandwidth is not known (hardware.bandwidth_gbs)"
    if not predicted_levels(setup.cfg.load):
        return f"load.kind={setup.cfg.load.kind} has no steady state"
    return RooflinePrior(setup, setup.model.facts)


class RooflinePrior:
    """Ceilings and floors of each deployment at each level.

    Args:
        setup: of the study.
        model: its shape.
    """

    kind = "roofline"
    trust = TRUST[kind]

    def __init__(self, setup: StudySetup, model: ModelFacts) -> None:
        self._setup = setup
        self._model = model
        self._known: dict[tuple[tuple[str, Any], ...], Prediction | None] = {}
        self.notes = [
            "knows nothing of what scheduling, graphs or speculative decoding gain: it counts "
            + ", ".join(sorted(COUNTED & set(setup.space.names)))
        ]

    def suggestions(self) -> list[dict[str, Any]]:
        return []

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        found = []
        for deployment in deployments:
            row = {name: value for name, value in deployment.items() if _counts(name)}
            key = tuple(row.items())
            if key not in self._known:
                self._known[key] = self._one(row)
            found.append(self._known[key])
        return found

    def _one(self, deployment: Deployment) -> Prediction | None:
        setup = self._setup
        resolved = setup.resolve(deployment)
        sent = {**setup.cfg.engine.args, **resolved.parameters}
        # How many drafted tokens are accepted nobody knows beforehand: no gain is promised.
        parameters = {name: value for name, value in sent.items() if name not in DRAFTING}
        parameters["dtype"] = parameters.get("dtype", setup.cfg.model.dtype)
        cost = _Cost(parameters, self._model, setup.hardware, setup, resolved.weights)
        devices = setup.device_count(deployment)
        points = [
            PredictedPoint(level.asked(), metrics)
            for level in predicted_levels(setup.cfg.load)
            if (metrics := _metrics(cost, level, devices))
        ]
        return Prediction(tuple(points)) if points else None


class _Cost:
    """Time of a request of one deployment, by how many run at once."""

    def __init__(
        self,
        parameters: Mapping[str, Any],
        model: ModelFacts,
        hardware: HardwareFacts,
        setup: StudySetup,
        weights: QuantizedWeights | None,
    ) -> None:
        self._facts = (parameters, model, hardware)
        self._weights = weights
        self._engine = setup.engine_facts
        self.input_tokens = float(setup.cfg.workload.input_tokens)
        self.output_tokens = float(setup.cfg.workload.output_tokens)
        self.replicas = float(max(1, int(parameters.get("data_parallel_size") or 1)))
        self.most = self._most_running()

    def _most_running(self) -> float:
        """Requests that the scheduler admits and the KV cache holds, over all replicas."""
        parameters, model, hardware = self._facts
        context = Context(parameters, model, hardware, self._engine, None, 0, weights=self._weights)
        limits = [batch_limits(context).sequences.expected]
        memory = verdict(parameters, model, hardware, weights=self._weights, engine=self._engine)
        if memory.kv_tokens is not None:
            # Half of the outputs is written, in the mean, while requests are in flight.
            held = memory.kv_tokens.expected / (self.input_tokens + self.output_tokens / 2)
            limits.append(held)
        return max(1.0, self.replicas * min(limits))

    def at(self, streams: float) -> tuple[float, float] | None:
        """(prompt, whole request) in ms with so many running; None where facts are missing."""
        parameters, model, hardware = self._facts
        found = bounds(
            parameters,
            model,
            hardware,
            batch=streams,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            weights=self._weights,
        )
        reading, prompt = found.get("tpot_bandwidth_floor_ms"), found.get("ttft_floor_ms")
        if reading is None or prompt is None:
            return None
        arithmetic = found.get("tpot_compute_floor_ms", 0.0)
        fixed = LAYER_MS * model.num_layers
        prompt = prompt / COMPUTE_SHARE + fixed
        step = max(reading / BANDWIDTH_SHARE, arithmetic / COMPUTE_SHARE) + fixed
        beside = max(0.0, streams / self.replicas - 1.0)
        return prompt, prompt * (1.0 + beside) + (self.output_tokens - 1.0) * step


def _counts(parameter: str) -> bool:
    return parameter in COUNTED or parameter.startswith("quantize.")


def _metrics(cost: _Cost, level: LoadLevel, devices: int) -> dict[str, float]:
    is_open, streams = level.kind == OPEN, float(level.concurrency or 1)
    found = _open(cost, level.rate_per_s or 0.0) if is_open else _closed(cost, streams)
    if found is None:
        return {}
    tokens_per_s, prompt_ms, request_ms, e2e_ms = found
    tpot_ms = (request_ms - prompt_ms) / max(1.0, cost.output_tokens - 1.0)
    metrics = {
        "output_tokens_per_s": tokens_per_s,
        "output_tokens_per_s_per_gpu": tokens_per_s / devices,
        "total_tokens_per_s": tokens_per_s * (1 + cost.input_tokens / cost.output_tokens),
        "requests_per_s": tokens_per_s / cost.output_tokens,
    }
    if tpot_ms > 0:
        metrics["output_tokens_per_s_per_user"] = 1e3 / tpot_ms
    waits_ms = e2e_ms - request_ms
    for name, value in (("ttft", prompt_ms + waits_ms), ("tpot", tpot_ms), ("e2e", e2e_ms)):
        # Arithmetic knows no spread: one value stands for all, and calibration tells them apart.
        metrics |= {f"{name}_{word}_ms": value for word in ("mean", "p50", "p90", "p95", "p99")}
    return metrics


def _closed(cost: _Cost, streams: float) -> tuple[float, float, float, float] | None:
    """(tokens/s, prompt, request, E2E in ms): what does not run waits its turn."""
    running = min(streams, cost.most)
    found = cost.at(running)
    if found is None:
        return None
    prompt_ms, request_ms = found
    return (
        running / request_ms * 1e3 * cost.output_tokens,
        prompt_ms,
        request_ms,
        (streams / running * request_ms),
    )


def _open(cost: _Cost, rate_per_s: float) -> tuple[float, float, float, float] | None:
    """The same with as many running as arrive meanwhile; None where the queue only grows."""
    streams = 1.0
    for _ in range(ROUNDS):
        found = cost.at(max(1.0, streams))
        if found is None:
            return None
        prompt_ms, request_ms = found
        wanted = rate_per_s * request_ms / 1e3
        if wanted > cost.most:
            return None
        if abs(wanted - streams) <= 1e-3 * streams:
            return rate_per_s * cost.output_tokens, prompt_ms, request_ms, request_ms
        streams = wanted
    return None
