"""guidellm's JSON report, of its versions 0.2 to 0.8. Pure.

Every benchmark of the report is a load level. Successful, incomplete and errored requests are kept
apart there, and only the successful ones are read. Units differ by field and are in its name:
``request_latency`` is seconds, ``time_to_first_token_ms`` milliseconds.

Two names mean other things than here. Its ``inter_token_latency_ms`` is
(last token - first token) / (output tokens - 1) of a request, which is what TPOT means here; its
``time_per_output_token_ms`` counts the wait for the first token in, and is not read. In the summary
of a benchmark the former is weighted by tokens, so single requests are preferred where the report
has all of them.

Its mean rates are averages over uneven moments, so throughput is tokens by the measured time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sweeper.load.level import CLOSED, SCHEDULED, level_name
from sweeper.metrics.external.result import (
    WHOLE_RUN,
    ForeignLevel,
    ForeignRun,
    number,
    positive,
    present,
    samples_ms,
    single_stream,
    success_fault,
    throughput_interval,
    time_faults,
    too_few,
)

CLIENT = "guidellm"
_LATENCIES = {
    "ttft": ("time_to_first_token_ms", 1.0),
    "tpot": ("inter_token_latency_ms", 1.0),
    "e2e": ("request_latency", 1e3),
}
_SCHEDULED_E2E = ("request_scheduled_latency", 1e3)
_STATISTICS = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}


@dataclass
class _Read:
    """What has been read of one benchmark so far."""

    metrics: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, list[float]] = field(default_factory=dict)
    few: list[str] = field(default_factory=list)
    token_weighted: bool = False


def missing(document: dict[str, Any]) -> list[str]:
    """Fields of the format that the document lacks; empty if it is of this format."""
    benchmarks = document.get("benchmarks")
    if not isinstance(benchmarks, list) or not benchmarks:
        return ["benchmarks"]
    lacks = []
    for benchmark in benchmarks:
        metrics = _dict(benchmark, "metrics")
        lacks += [
            f"benchmarks[].metrics.{name}" for name, _ in _LATENCIES.values() if name not in metrics
        ]
        if not _strategy(benchmark):
            lacks.append("benchmarks[].config.strategy")
    return list(dict.fromkeys(lacks))


def read(document: dict[str, Any]) -> ForeignRun:
    """The document in this project's names and units."""
    benchmarks = [item for item in document["benchmarks"] if isinstance(item, dict)]
    levels, weighted = [], False
    for benchmark in benchmarks:
        level, found = _level(benchmark)
        levels.append(level)
        weighted = weighted or found.token_weighted
    kind = _data(_asked(document)).get("kind")
    notes = [f"its prompts: {kind}"] if kind else []
    notes.append(
        "guidellm's inter-token latency is the TPOT of this comparison; its own time per output "
        "token counts the first token in and is not compared"
    )
    if weighted:
        notes.append(
            "the report lacks single requests: its TPOT percentiles weigh a request by its tokens, "
            "which only makes no difference if all outputs are of one length"
        )
    if any(level.load["kind"] in SCHEDULED for level in levels):
        notes.append(
            "where requests arrive by the clock, guidellm counts TTFT from when a request was "
            "sent, not from when it was due"
        )
    return ForeignRun(CLIENT, _conditions(document, benchmarks[0]), tuple(levels), tuple(notes))


def _dict(value: Any, *path: str) -> dict[str, Any]:
    """The mapping at a path inside, empty if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return dict(value) if isinstance(value, Mapping) else {}


def _strategy(benchmark: Any) -> dict[str, Any]:
    """How a benchmark was driven; `config` since 0.4, `args` before."""
    return _dict(benchmark, "config", "strategy") or _dict(benchmark, "args", "strategy")


def _totals(benchmark: dict[str, Any]) -> dict[str, Any]:
    """Requests by how they ended; among the metrics since 0.4."""
    return _dict(benchmark, "metrics", "request_totals") or _dict(benchmark, "request_totals")


def _level(benchmark: dict[str, Any]) -> tuple[ForeignLevel, _Read]:
    metrics = _dict(benchmark, "metrics")
    totals = _totals(benchmark)
    completed, errored = number(totals.get("successful")), number(totals.get("errored"))
    load, name = _load(_strategy(benchmark))
    found = _Read() if not completed else _measured(benchmark, metrics, completed, load)
    # A request that was under way when the time was up has not failed: it counts nowhere.
    ended = None if completed is None else completed + (errored or 0.0)
    fault = success_fault(completed, ended)
    if ended and completed is not None:
        found.metrics["success_share"] = completed / ended
    level = ForeignLevel(
        name=name,
        load=load,
        metrics=found.metrics,
        n=None if completed is None else int(completed),
        intervals=found.intervals,
        reasons=(*([fault] if fault else []), *time_faults(found.metrics)),
        low_confidence=tuple(dict.fromkeys(found.few)),
    )
    return level, found


def _measured(
    benchmark: dict[str, Any], metrics: dict[str, Any], completed: float, load: dict[str, Any]
) -> _Read:
    found = _Read()
    confidence = number(_dict(benchmark, "config").get("confidence"))
    for ours, (theirs, to_ms) in _sources(metrics).items():
        summary = _dict(metrics, theirs, "successful")
        _take_summary(found, ours, summary, to_ms, has_intervals=confidence == 0.95)
    found.few = too_few(found.metrics, int(completed))
    singles = _single_requests(benchmark, completed, "request_scheduled_latency" in _used(metrics))
    lengths = _dict(metrics, "output_token_count", "successful")
    found.token_weighted = "tpot" not in singles and number(lengths.get("std_dev")) != 0.0
    tokens = singles.pop("output_tokens", [])
    for ours, seconds in singles.items():
        exact, intervals, few = samples_ms(ours, seconds)
        found.metrics.update(exact)
        found.intervals.update(intervals)
        found.few += few
    found.metrics |= _throughput(benchmark, metrics, completed, load)
    found.metrics |= single_stream(load, found.metrics)
    if load["kind"] == CLOSED:
        for name in ("output_tokens_per_s", "output_tokens_per_s_per_user"):
            rate = found.metrics.get(name, 0.0)
            bounds = throughput_interval(rate, tokens, singles.get("e2e", []))
            if rate and bounds is not None:
                found.intervals[name] = bounds
    return found


def _sources(metrics: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Latency → (field, factor to milliseconds); E2E from the due time where that is known."""
    scheduled = _dict(metrics, _SCHEDULED_E2E[0], "successful")
    return {**_LATENCIES, "e2e": _SCHEDULED_E2E} if scheduled else dict(_LATENCIES)


def _used(metrics: dict[str, Any]) -> set[str]:
    return {name for name, _ in _sources(metrics).values()}


def _take_summary(
    found: _Read, name: str, summary: dict[str, Any], to_ms: float, *, has_intervals: bool
) -> None:
    told = {"mean": summary.get("mean")} | {
        ours: _dict(summary, "percentiles").get(theirs) for ours, theirs in _STATISTICS.items()
    }
    for statistic, value in told.items():
        if (plain := positive(value)) is not None:
            found.metrics[f"{name}_{statistic}_ms"] = plain * to_ms
    for statistic in ("p50", "p95"):
        bounds = _dict(summary, "percentile_cis", statistic)
        low, high = positive(bounds.get("lower")), positive(bounds.get("upper"))
        if has_intervals and low is not None and high is not None:
            found.intervals[f"{name}_{statistic}_ms"] = [low * to_ms, high * to_ms]


def _single_requests(
    benchmark: dict[str, Any], completed: float, from_due_time: bool
) -> dict[str, list[float]]:
    """Of the successful requests: seconds by latency, and ``output_tokens``.

    Empty if the report kept only a sample of them.
    """
    kept = _dict(benchmark, "requests").get("successful")
    if not isinstance(kept, list) or len(kept) != int(completed):
        return {}
    e2e = _SCHEDULED_E2E[0] if from_due_time else "request_latency"
    fields = {
        "ttft": ("time_to_first_token_ms", 1e-3),
        "tpot": ("inter_token_latency_ms", 1e-3),
        "e2e": (e2e, 1.0),
        "output_tokens": ("output_tokens", 1.0),
    }
    found = {}
    for ours, (theirs, to_s) in fields.items():
        values = [positive(_dict(request).get(theirs)) for request in kept]
        several = [v * to_s for v in values if v is not None]
        # TPOT does not exist for an output of one token; the others must be there for all.
        if several and (ours == "tpot" or len(several) == len(values)):
            found[ours] = several
    return found


def _throughput(
    benchmark: dict[str, Any], metrics: dict[str, Any], completed: float, load: dict[str, Any]
) -> dict[str, float]:
    duration = positive(benchmark.get("duration"))
    values: dict[str, float | None] = {}
    for side, name in (("input", "prompt_token_count"), ("output", "output_token_count")):
        summary = _dict(metrics, name, "successful")
        values[f"{side}_tokens_mean"] = positive(summary.get("mean"))
        tokens = positive(summary.get("total_sum"))
        if side == "output" and tokens and duration:
            values["output_tokens_per_s"] = tokens / duration
            if load.get("kind") == "closed":
                values["output_tokens_per_s_per_user"] = tokens / duration / load["concurrency"]
    if duration:
        values["requests_per_s"] = completed / duration
    totals = _totals(benchmark)
    if completed == number(totals.get("total")):
        # Told by how the requests ended, so only where all ended well is it the whole load.
        concurrency = _dict(metrics, "request_concurrency", "successful")
        values["achieved_concurrency"] = positive(concurrency.get("mean"))
    return {name: value for name, value in values.items() if value is not None}


def _load(strategy: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """(what was asked, name of the level)."""
    kind, rate = str(strategy.get("type_", "")), positive(strategy.get("rate"))
    limit = positive(strategy.get("max_concurrency"))
    streams = 1.0 if kind == "synchronous" else positive(strategy.get("streams"))
    if streams is not None:
        load: dict[str, Any] = {"kind": "closed", "concurrency": int(streams)}
        return load, level_name(load)
    if kind in {"constant", "poisson"} and rate is not None:
        load = {"kind": "open", "rate_per_s": rate, "arrivals": kind}
        return load, level_name(load)
    if kind == "trace":
        load = {"kind": "replay", "time_scale": positive(strategy.get("time_scale")) or 1.0}
        return load, level_name(load)
    most = f", at most {int(limit)} at once" if limit else ""
    return {"kind": kind}, f"{kind or 'unnamed'} load of guidellm{most}"


def _conditions(document: dict[str, Any], benchmark: dict[str, Any]) -> dict[str, Any]:
    asked = _asked(document)
    backend = _dict(benchmark, "config", "backend") or _dict(benchmark, "worker")
    data = _data(asked)
    started = positive(benchmark.get("start_time"))
    warm_up = _dict(benchmark, "config", "warmup")
    return present(
        {
            "numbers": "measured",
            "model": backend.get("model") or backend.get("backend_model") or asked.get("model"),
            "tokenizer": _dict(asked, "tokenizer").get("model") or asked.get("processor"),
            "input_tokens_asked": number(data.get("prompt_tokens")),
            "output_tokens_asked": number(data.get("output_tokens")),
            "warm_up": _warm_up(warm_up),
            "client": CLIENT,
            "client_version": _dict(document, "metadata").get("guidellm_version"),
            "time": None
            if started is None
            else datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
            "throughput_window": WHOLE_RUN,
        }
    )


def _asked(document: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the run; `config` since 0.7, `args` before, absent before 0.4."""
    return _dict(document, "config", "spec") or _dict(document, "args")


def _data(asked: dict[str, Any]) -> dict[str, Any]:
    """The first data source, if it is written as a mapping."""
    sources = asked.get("data")
    first = sources[0] if isinstance(sources, list) and sources else sources
    return _dict(first)


def _warm_up(asked: dict[str, Any]) -> str | None:
    """What was left out at the beginning; None if the report does not say."""
    if not asked:
        return None
    told = present({name: asked.get(name) for name in ("percent", "value")})
    return "none" if not told else ", ".join(f"{name} {value}" for name, value in told.items())
