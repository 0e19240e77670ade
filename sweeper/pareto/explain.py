"""Why a deployment wins: what bounds it at its load, and what bounds the default there. Pure.

regime              what shows it
kv_capacity         requests are preempted, or wait while the KV cache is full
scheduler_limit     requests wait while the KV cache has room: a batch limit holds them back
prefill             more than half of a request's time is before its first token, without a queue
memory_decode       a decode step reads weights and cache at a good share of the bandwidth
compute_decode      likewise for arithmetic, where arithmetic is the higher of the two floors
overhead            a decode step takes several times what memory and arithmetic need: scheduler,
                    sampling, host and kernel launches

The first that fits, in this order, is named. The thresholds are conventions; the figures behind the
verdict are told with it, so that a reader can judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweeper.pareto.recommendation import Recommendation

Row = Mapping[str, Any]

PREEMPTED = 0.02
"""Preemptions a request from which the cache counts as too small."""
FULL = 0.95
WAITING = 0.1
"""Waiting requests by those in flight from which a queue counts."""
BEFORE_FIRST = 0.5
"""Share of a request's time before its first token from which prefill counts as the bound."""
NEAR = 0.3
"""Share of a floor's speed from which a decode step counts as bound by it."""

NAMES = {
    "kv_capacity": "KV-capacity-bound",
    "scheduler_limit": "scheduler-bound (a batch limit keeps requests waiting)",
    "prefill": "prefill-bound",
    "memory_decode": "memory-bound in decode",
    "compute_decode": "compute-bound in decode",
    "overhead": "scheduler-bound (a step costs far more than memory and arithmetic need)",
}


@dataclass(frozen=True)
class Regime:
    """What bounds an operating point.

    Attributes:
        kind: a key of `NAMES`; None where the figures do not tell.
        evidence: the figures that it rests on, in words.
    """

    kind: str | None
    evidence: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In words, with its evidence."""
        if self.kind is None:
            return "bound by nothing that its figures tell"
        return f"{NAMES[self.kind]} ({', '.join(self.evidence)})"


def regime(row: Row) -> Regime:
    """What bounds a point.

    Args:
        row: of `points_frame`; what was not measured is absent.
    """
    for look in (_kv_capacity, _scheduler_limit, _prefill, _decode):
        found = look(row)
        if found is not None:
            return found
    return Regime(None)


def explain(recommendation: Recommendation) -> str:
    """One paragraph: what bounds the winner and the default, what changed, where the time went."""
    point, base = recommendation.point, recommendation.baseline
    own = regime(point)
    at = f"at {recommendation.level}"
    if recommendation.is_baseline or base is None:
        whose = "The engine's default" if recommendation.is_baseline else "The recommended one"
        if own.kind is None:
            return f"Nothing measured tells what bounds it {at}."
        return f"{whose} is {own.text} {at}."
    theirs = regime(base)
    changed = ", ".join(f"{name}={value}" for name, value in _changed(point, base).items())
    winner = f"trial {recommendation.trial} ({changed or 'the same settings'})"
    alike = own.kind is not None and own.kind == theirs.kind
    if own.kind is None and theirs.kind is None:
        told = f"Nothing measured tells what bounds {winner} or the default {at}."
        return " ".join(text for text in (told, _where_time_went(point, base)) if text)
    sentences = [
        f"At {recommendation.level} the default is {theirs.text}.",
        f"T{winner[1:]} is bound alike ({', '.join(own.evidence)})."
        if alike
        else f"T{winner[1:]} is {own.text}.",
        _where_time_went(point, base),
        _cache(point, base),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _kv_capacity(row: Row) -> Regime | None:
    preemptions, requests = row.get("preemptions"), row.get("n")
    full, queue = row.get("kv_cache_usage_max_share"), _queue_share(row)
    if preemptions and requests and preemptions / requests > PREEMPTED:
        told = [f"{preemptions / requests:.2f} preemptions a request"]
        return Regime("kv_capacity", (*told, *_full(full)))
    if full is not None and full >= FULL and queue is not None and queue >= WAITING:
        return Regime("kv_capacity", (*_full(full), _waiting(row)))
    return None


def _scheduler_limit(row: Row) -> Regime | None:
    queue = _queue_share(row)
    if queue is None or queue < WAITING:
        return None
    return Regime("scheduler_limit", (_waiting(row), *_full(row.get("kv_cache_usage_max_share"))))


def _prefill(row: Row) -> Regime | None:
    first, whole = _latency(row, "ttft"), _latency(row, "e2e")
    if first is None or whole is None or first / whole < BEFORE_FIRST:
        return None
    return Regime("prefill", (f"{first / whole:.0%} of a request's time before its first token",))


def _decode(row: Row) -> Regime | None:
    memory, arithmetic = (
        row.get(f"predicted.tpot_{part}_floor_ms") for part in ("bandwidth", "compute")
    )
    over = row.get("predicted.tpot_over_floor")
    used = row.get("predicted.bandwidth_utilization_share")
    if over is None and used is None:
        return None
    near = max(used or 0.0, 1.0 / over if over else 0.0)
    told = []
    if used is not None:
        told.append(f"{used:.0%} of the memory bandwidth used")
    if over is not None:
        told.append(f"a decode step takes {over:.1f} times its floor")
    if near < NEAR:
        return Regime("overhead", tuple(told))
    is_arithmetic = memory is not None and arithmetic is not None and arithmetic > memory
    return Regime("compute_decode" if is_arithmetic else "memory_decode", tuple(told))


def _queue_share(row: Row) -> float | None:
    queue = row.get("queue_mean_requests")
    inside = row.get("achieved_concurrency") or row.get("concurrency")
    return None if queue is None or not inside else float(queue) / float(inside)


def _waiting(row: Row) -> str:
    return f"{row['queue_mean_requests']:.1f} requests waiting on average"


def _full(share: float | None) -> tuple[str, ...]:
    return () if share is None else (f"KV cache up to {share:.0%} full",)


def _latency(row: Row, name: str) -> float | None:
    for statistic in ("mean", "p50", "p95"):
        value = row.get(f"{name}_{statistic}_ms")
        if value:
            return float(value)
    return None


def _changed(point: Row, base: Row) -> dict[str, Any]:
    """Settings in which the two differ, as the winner has them."""
    ours, theirs = dict(point["deployment"]), dict(base["deployment"])
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return {name: ours.get(name, "engine default") for name in sorted(names)}


def _where_time_went(point: Row, base: Row) -> str:
    """How the two phases of a request changed, and which of them the gain comes from."""
    parts, shares = [], {}
    for name, label in (("ttft", "waiting for the first token"), ("tpot", "each later token")):
        ours, theirs = _latency(point, name), _latency(base, name)
        if ours is not None and theirs is not None:
            parts.append(f"{label} takes {ours:.4g} ms instead of {theirs:.4g}")
            shares[name] = theirs - ours
    if not parts:
        return ""
    text = f"{parts[0][0].upper()}{parts[0][1:]}" + "".join(f", {part}" for part in parts[1:])
    tokens = point.get("output_tokens_mean")
    if len(shares) < 2 or not tokens or tokens <= 1:
        return f"{text}."
    before, after = shares["ttft"], shares["tpot"] * (float(tokens) - 1)
    if before > 0 and after > 0:
        share = after / (before + after)
        return f"{text}: {share:.0%} of the time saved is saved in decode."
    return f"{text}."


def _cache(point: Row, base: Row) -> str:
    ours, theirs = (row.get("kv_cache_usage_max_share") for row in (point, base))
    if ours is None or theirs is None or abs(ours - theirs) < 0.1:
        return ""
    return f"Its KV cache fills to {ours:.0%}, the default's to {theirs:.0%}."
