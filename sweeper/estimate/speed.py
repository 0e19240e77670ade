"""Speed of light: the least latency and the most tokens a second that a machine allows.

    bounds      floors of TTFT and TPOT, ceilings of tokens/s, prefill and decode apart: predicted
    nearness    how near a measurement came to them

docs/speed-of-light.md derives each formula and names its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.estimate.facts import Context
from sweeper.estimate.roofline import Rates, Shape, rates_of, shape_of, speculated_tokens
from sweeper.estimate.weights import QuantizedWeights
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.facts import ModelFacts


def bounds(
    parameters: Mapping[str, Any],
    model: ModelFacts,
    hardware: HardwareFacts,
    *,
    batch: float,
    input_tokens: float,
    output_tokens: float,
    prefix_hit_share: float = 0.0,
    decoding: float | None = None,
    weights: QuantizedWeights | None = None,
) -> dict[str, float]:
    """Floors and ceilings of one operating point. Predicted; no IO.

    Args:
        parameters: deployment, the flags of every launch counted in.
        model: shape of the model.
        hardware: one device's peaks, from a data sheet or measured.
        batch: requests in flight over all replicas, a mean is fine.
        input_tokens: mean prompt length.
        output_tokens: mean output length, at least 1.
        prefix_hit_share: share of prompt tokens served from the prefix cache.
        decoding: of `batch`, how many decode at once (`decoding_streams`); None takes them all,
            which is too many where requests wait or prefill overlaps.
        weights: of the quantized checkpoint that is served, None where the deployment's words must
            do.

    Returns:
        ``tpot_floor_ms`` and its parts ``tpot_bandwidth_floor_ms`` and ``tpot_compute_floor_ms``,
        ``ttft_floor_ms``, ``output_tokens_per_s_ceiling``, ``prefill_tokens_per_s_ceiling``,
        ``decode_tokens_per_s_ceiling``, device time at peak ``compute_us_per_input_token`` and
        ``compute_us_per_output_token`` (over all devices), and ``tokens_per_step_limit`` above 1
        under speculative decoding. What the facts do not allow is absent.
    """
    context = Context(parameters, model, hardware, None, None, 0, weights=weights)
    shape, speculated = shape_of(context, model), speculated_tokens(parameters)
    if shape is None or speculated is None or batch <= 0 or output_tokens < 1 or input_tokens < 1:
        return {}
    hit = min(1.0, max(0.0, prefix_hit_share))
    light = _Light(
        shape,
        rates_of(context, model, hardware),
        tp=max(1, context.tp),
        pp=max(1, context.pp),
        dp=max(1, context.dp),
        step_tokens=1 + speculated,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        computed_tokens=max(1.0, input_tokens * (1.0 - hit)),
    )
    running = _running(batch, context)
    together = running if decoding is None else min(running, max(decoding, 1e-9))
    return _floors(light, together) | _ceilings(light, running) | _costs(light)


def nearness(bounds: Mapping[str, float], metrics: Mapping[str, float]) -> dict[str, float]:
    """How near measured metrics came to their bounds.

    Args:
        bounds: result of `bounds` at the same operating point.
        metrics: measured: ``tpot_mean_ms``, ``ttft_mean_ms`` (``_p50_ms`` stands in where there is
            no mean), ``output_tokens_per_s``, ``total_tokens_per_s``, and under speculative
            decoding ``spec_tokens_per_draft``.

    Returns:
        ``bandwidth_utilization_share`` (MBU), ``flops_utilization_share`` (MFU),
        ``tpot_over_floor`` and ``ttft_over_floor`` (1 is the floor), and
        ``output_tokens_per_s_of_ceiling_share``; absent where a bound or a measurement is missing.
    """
    tpot, ttft = _latency(metrics, "tpot"), _latency(metrics, "ttft")
    output = metrics.get("output_tokens_per_s")
    near = {
        "bandwidth_utilization_share": _bandwidth_share(bounds, metrics, tpot),
        "flops_utilization_share": _flops_share(bounds, metrics),
        "tpot_over_floor": _ratio(tpot, bounds.get("tpot_floor_ms")),
        "ttft_over_floor": _ratio(ttft, bounds.get("ttft_floor_ms")),
        "output_tokens_per_s_of_ceiling_share": _ratio(
            output, bounds.get("output_tokens_per_s_ceiling")
        ),
    }
    return {name: value for name, value in near.items() if value is not None}


def decoding_streams(metrics: Mapping[str, float]) -> float | None:
    """Mean number of streams that decode at once, from measured metrics (Little's law).

    Of its time in flight a request decodes the part after its first token, so waiting in a queue
    and prefill are out. None where a measurement is missing.
    """
    in_flight = metrics.get("achieved_concurrency")
    ttft, e2e = metrics.get("ttft_mean_ms"), metrics.get("e2e_mean_ms")
    if in_flight is None or ttft is None or not e2e or ttft >= e2e:
        return None
    return in_flight * (e2e - ttft) / e2e


@dataclass(frozen=True)
class _Light:
    """One deployment at one pair of lengths; seconds throughout.

    Attributes:
        step_tokens: most tokens a stream gains in one step.
        computed_tokens: of the prompt, those not found in the prefix cache.
    """

    shape: Shape
    rates: Rates
    tp: int
    pp: int
    dp: int
    step_tokens: int
    input_tokens: float
    output_tokens: float
    computed_tokens: float

    @property
    def context(self) -> float:
        """Mean tokens behind a decoding stream."""
        return self.input_tokens + self.output_tokens / 2

    def read_s(self, streams: float) -> float | None:
        """Reading of one token's part of a decoding step, all pipeline stages in turn.

        A pipeline works on `pp` groups of streams at once, so a step reads the cache of one group.
        Prompt tokens found in the prefix cache may be common to all streams and read once for all
        of them, so they are left out.
        """
        if self.rates.bandwidth is None:
            return None
        group = max(1.0, streams / self.dp / self.pp)
        everywhere = max(1.0, streams / self.pp) * self.step_tokens
        own = self.context - (self.input_tokens - self.computed_tokens)
        # Experts are spread over the data-parallel replicas too.
        read = self.shape.read_bytes(everywhere, self.tp, self.tp * self.dp)
        read += group * own * self.shape.kv_bytes
        from_memory = max(0.0, read - self.rates.cache_bytes * self.pp)
        return from_memory / self.rates.bandwidth / self.step_tokens

    def output_token_s(self) -> float | None:
        """Arithmetic of one decoded token on one device."""
        attention = self.shape.attention_operations * self.context
        met = self.shape.dense + self.shape.experts * self.shape.expert_share
        return self._compute_s(met, self.shape.head, attention)

    def prompt_s(self, expert_ranks: int = 1) -> float | None:
        """Arithmetic of one prompt on one device, experts spread over so many replicas.

        New tokens attend to what the prefix cache holds and, by half, to one another.
        """
        new, old = self.computed_tokens, self.input_tokens - self.computed_tokens
        met = self.shape.dense + self.shape.experts * self.shape.expert_share / expert_ranks
        attention = self.shape.attention_operations * (new * old + new * new / 2)
        return self._compute_s(met * new, self.shape.head, attention)

    def _compute_s(self, linear: float, head: float, attention: float) -> float | None:
        rates = self.rates
        if rates.linear is None or rates.head is None or rates.attention is None:
            return None
        return 2 * linear / rates.linear + 2 * head / rates.head + attention / rates.attention

    def compute_s(self, streams: float) -> float | None:
        """Arithmetic of one token's part of a decoding step."""
        token = self.output_token_s()
        group = max(1.0, streams / self.dp / self.pp)
        return None if token is None else group * token / self.tp

    def tpot_s(self, streams: float) -> float | None:
        """Floor; None without a bandwidth, because arithmetic alone says next to nothing here."""
        read = self.read_s(streams)
        return None if read is None else max(read, self.compute_s(streams) or 0.0)

    def ttft_s(self) -> float | None:
        """Floor of a request that never waits; None without the arithmetic peak.

        Chunks of a prompt fill a pipeline, so its stages share the arithmetic; the first chunk has
        to pass all of them, so they do not share the reading.
        """
        prompt = self.prompt_s(self.dp)
        if prompt is None:
            return None
        compute = prompt / self.tp / self.pp
        if self.rates.bandwidth is None:
            return compute
        read = self.shape.read_bytes(self.computed_tokens, self.tp, self.tp * self.dp)
        from_memory = max(0.0, read - self.rates.cache_bytes * self.pp)
        return max(compute, from_memory / self.rates.bandwidth)

    @property
    def devices(self) -> int:
        return self.tp * self.pp * self.dp


def _running(batch: float, context: Context) -> float:
    """Requests a scheduler runs at once; beyond its limit they wait."""
    limit = context.number("max_num_seqs")
    return batch if limit is None or limit < 1 else min(batch, float(limit * max(1, context.dp)))


def _floors(light: _Light, streams: float) -> dict[str, float]:
    seconds = {
        "tpot_floor_ms": light.tpot_s(streams),
        "tpot_bandwidth_floor_ms": light.read_s(streams),
        "tpot_compute_floor_ms": light.compute_s(streams),
        "ttft_floor_ms": light.ttft_s(),
    }
    return {name: 1e3 * value for name, value in seconds.items() if value is not None}


def _ceilings(light: _Light, streams: float) -> dict[str, float]:
    """Tokens/s of all replicas; each the least of several bounds that all hold."""
    ceilings: dict[str, list[float]] = {"prefill": [], "decode": [], "output": []}
    tpot, alone, ttft = light.tpot_s(streams), light.tpot_s(1e-9), light.ttft_s()
    prompt, token = light.prompt_s(), light.output_token_s()
    outputs, later = light.output_tokens, light.output_tokens - 1
    if ttft:
        ceilings["prefill"].append(streams * light.input_tokens / ttft)
    if prompt:
        ceilings["prefill"].append(light.devices * light.input_tokens / prompt)
    if tpot:
        ceilings["decode"].append(streams / tpot)
        if later > 0:  # the first token of each output comes from its prefill
            ceilings["output"].append(streams / tpot * outputs / later)
    if ttft and alone:
        ceilings["output"].append(streams * outputs / (ttft + later * alone))
    if prompt and token:
        ceilings["output"].append(light.devices * outputs / (prompt + later * token))
    return {f"{name}_tokens_per_s_ceiling": min(these) for name, these in ceilings.items() if these}


def _costs(light: _Light) -> dict[str, float]:
    """What `nearness` needs beside the bounds themselves."""
    costs: dict[str, float] = {}
    prompt, token = light.prompt_s(), light.output_token_s()
    if prompt is not None and token is not None:
        costs["compute_us_per_input_token"] = 1e6 * prompt / light.input_tokens / light.devices
        costs["compute_us_per_output_token"] = 1e6 * token / light.devices
    if light.step_tokens > 1:
        costs["tokens_per_step_limit"] = float(light.step_tokens)
    return costs


def _latency(metrics: Mapping[str, float], name: str) -> float | None:
    mean = metrics.get(f"{name}_mean_ms")
    return mean if mean is not None else metrics.get(f"{name}_p50_ms")


def _bandwidth_share(
    bounds: Mapping[str, float], metrics: Mapping[str, float], tpot_ms: float | None
) -> float | None:
    """Bytes that decoding must have moved in a second over the peak.

    Under speculative decoding a step lasts as many TPOT as it gave tokens; without that number the
    share is not known.
    """
    per_step = bounds.get("tokens_per_step_limit", 1.0)
    gained = 1.0
    if per_step > 1:
        accepted = metrics.get("spec_tokens_per_draft")
        if accepted is None or tpot_ms is None:
            return None
        gained += accepted
    step_ms = None if tpot_ms is None else tpot_ms * gained
    floor = bounds.get("tpot_bandwidth_floor_ms")
    return None if floor is None else _ratio(floor * per_step, step_ms)


def _flops_share(bounds: Mapping[str, float], metrics: Mapping[str, float]) -> float | None:
    """Operations that the tokens of one second need, prefill and decode, over the peak."""
    output, total = metrics.get("output_tokens_per_s"), metrics.get("total_tokens_per_s")
    per_input = bounds.get("compute_us_per_input_token")
    per_output = bounds.get("compute_us_per_output_token")
    if output is None or total is None or per_input is None or per_output is None:
        return None
    return ((total - output) * per_input + output * per_output) / 1e6


def _ratio(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None
