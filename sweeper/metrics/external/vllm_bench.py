"""`vllm bench serve --save-result` (and `--append-result`), and its forerunners. Pure.

Latencies are named ``median_ttft_ms``, ``p99_tpot_ms`` and so on, in milliseconds. Older files and
what has been made of them leave out ``_ms`` and are in seconds, so the name decides the unit.

Which percentiles there are was decided by `--metric-percentiles` (only P99 by default) and
`--percentile-metrics` (E2E is not among them by default). One that is missing is missing: another
percentile or the mean is another number. But where the file has single requests (`--save-detailed`;
``latencies`` always in newer versions) percentiles are taken from those, exactly.

``itl`` counts chunks, not tokens, and is never read; ``max_output_tokens_per_s`` neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeper.load.level import CLOSED, level_name
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

CLIENT = "vllm bench serve"
_THROUGHPUT = "output_throughput"
_NAMES = {"ttft": "ttft", "tpot": "tpot", "e2e": "e2el"}
_STATISTICS = {
    "mean": ("mean",),
    "p50": ("median", "p50"),
    "p90": ("p90",),
    "p95": ("p95",),
    "p99": ("p99",),
}
_UNITS = ("_ms", "")


@dataclass
class _Read:
    """What has been read so far."""

    metrics: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, list[float]] = field(default_factory=dict)
    few: list[str] = field(default_factory=list)
    seconds: set[str] = field(default_factory=set)


def missing(document: dict[str, Any]) -> list[str]:
    """Fields of the format that the document lacks; empty if it is of this format."""
    lacks = [key for key in ("model_id", "duration", _THROUGHPUT) if key not in document]
    if "completed" not in document and "num_prompts" not in document:
        lacks.append("completed or num_prompts")
    if not any(f"median_{name}{unit}" in document for name in ("ttft", "tpot") for unit in _UNITS):
        lacks.append("median_ttft_ms")
    return lacks


def read(document: dict[str, Any]) -> ForeignRun:
    """The document in this project's names and units."""
    completed, total = _counts(document)
    # With nothing completed the file is full of zeros, and a zero latency is no measurement.
    found = _Read() if completed == 0 else _measured(document, completed)
    fault = success_fault(completed, total)
    if total and completed is not None:
        found.metrics["success_share"] = completed / total
    faults = [fault] if fault else []
    load, name = _load(document)
    level = ForeignLevel(
        name=name,
        load=load,
        metrics=found.metrics,
        n=None if completed is None else int(completed),
        intervals=found.intervals,
        reasons=(*faults, *time_faults(found.metrics)),
        low_confidence=tuple(dict.fromkeys(found.few)),
    )
    return ForeignRun(CLIENT, _conditions(document, total), (level,), _notes(document, found))


def _counts(document: dict[str, Any]) -> tuple[float | None, float | None]:
    """(completed, sent). Old files tell no failures, but how many prompts there were."""
    completed, failed = number(document.get("completed")), number(document.get("failed"))
    if completed is not None and failed is not None:
        return completed, completed + failed
    return completed, number(document.get("num_prompts"))


def _measured(document: dict[str, Any], completed: float | None) -> _Read:
    found = _Read()
    for ours, theirs in _NAMES.items():
        for statistic, words in _STATISTICS.items():
            _take_latency(document, found, f"{ours}_{statistic}_ms", theirs, words)
    # Single requests first give intervals; they are the same requests as the percentiles'.
    n = None if completed is None else int(completed)
    found.few = too_few(found.metrics, n)
    singles = _single_requests(document, completed)
    lengths = singles.pop("output_tokens", [])
    for name, seconds in singles.items():
        metrics, intervals, few = samples_ms(name, seconds)
        found.metrics.update(metrics)
        found.intervals.update(intervals)
        found.few += few
    plain = {
        "output_tokens_per_s": document.get(_THROUGHPUT),
        "total_tokens_per_s": document.get("total_token_throughput"),
        "requests_per_s": document.get("request_throughput"),
        "spec_acceptance_share": _share(document, "draft_tokens"),
        "spec_tokens_per_draft": _share(document, "num_drafts"),
    }
    if completed:
        for side, key in (("input", "total_input_tokens"), ("output", "total_output_tokens")):
            tokens = positive(document.get(key))
            plain[f"{side}_tokens_mean"] = None if tokens is None else tokens / completed
    streams = positive(document.get("max_concurrency"))
    rate = positive(document.get(_THROUGHPUT))
    if streams and rate and document.get("request_rate") in (None, "inf"):
        plain["output_tokens_per_s_per_user"] = rate / streams
    found.metrics |= {
        name: value for name, told in plain.items() if (value := positive(told)) is not None
    }
    load, _ = _load(document)
    found.metrics |= single_stream(load, found.metrics)
    if load["kind"] == CLOSED:
        for name in ("output_tokens_per_s", "output_tokens_per_s_per_user"):
            bounds = throughput_interval(
                found.metrics.get(name, 0.0), lengths, singles.get("e2e", [])
            )
            if bounds is not None and name in found.metrics:
                found.intervals[name] = bounds
    return found


def _share(document: dict[str, Any], by: str) -> float | None:
    """Accepted tokens of speculative decoding by another of its counts."""
    accepted = positive(document.get("spec_decode_accepted_tokens"))
    count = positive(document.get(f"spec_decode_{by}"))
    return accepted / count if accepted and count else None


def _take_latency(
    document: dict[str, Any], found: _Read, metric: str, name: str, words: Sequence[str]
) -> None:
    for word in words:
        value = positive(document.get(f"{word}_{name}_ms"))
        if value is None:
            value = positive(document.get(f"{word}_{name}"))
            if value is None:
                continue
            value *= 1e3
            found.seconds.add(name)
        found.metrics[metric] = value
        return


def _single_requests(document: dict[str, Any], completed: float | None) -> dict[str, list[float]]:
    """Of the successful requests: seconds by latency, and ``output_tokens``.

    Only what is there for all of them.
    """
    latencies, ttfts = _floats(document.get("latencies")), _floats(document.get("ttfts"))
    lengths, errors = _floats(document.get("output_lens")), document.get("errors")
    lists = [found for found in (latencies, ttfts, lengths) if found]
    count = max(map(len, lists), default=0)
    ok = [True] * count
    if isinstance(errors, list) and len(errors) == count:
        ok = [not error for error in errors]
    if not count or completed is None or sum(ok) != int(completed):
        return {}
    found: dict[str, list[float]] = {}
    if len(latencies) == count:
        found["e2e"] = [t for t, good in zip(latencies, ok, strict=True) if good]
    if len(ttfts) == count:
        found["ttft"] = [t for t, good in zip(ttfts, ok, strict=True) if good]
    if len(lengths) == count:
        found["output_tokens"] = [n for n, good in zip(lengths, ok, strict=True) if good]
    if len(latencies) == len(ttfts) == len(lengths) == count:
        found["tpot"] = [
            (end - first) / (tokens - 1)
            for end, first, tokens, good in zip(latencies, ttfts, lengths, ok, strict=True)
            if good and tokens > 1
        ]
    return {name: values for name, values in found.items() if values and min(values) > 0}


def _floats(value: Any) -> list[float]:
    """A list of numbers, empty if it is none."""
    if not isinstance(value, list):
        return []
    found = [number(item) for item in value]
    return [item for item in found if item is not None] if None not in found else []


def _load(document: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """(what was asked, name of the level)."""
    streams, rate = (
        positive(document.get("max_concurrency")),
        positive(document.get("request_rate")),
    )
    ramp = document.get("ramp_up_strategy")
    if ramp is not None:
        start, end = document.get("ramp_up_start_rps"), document.get("ramp_up_end_rps")
        return {"kind": "ramp", "shape": ramp}, f"{ramp} ramp {start} to {end} requests/s"
    if rate is None and streams is not None:
        load: dict[str, Any] = {"kind": "closed", "concurrency": int(streams)}
        return load, level_name(load)
    if rate is None:
        count = document.get("num_prompts", document.get("completed"))
        return {"kind": "burst", "requests": count}, f"all {count} requests at once"
    burstiness = positive(document.get("burstiness")) or 1.0
    load = {"kind": "open", "rate_per_s": rate, "arrivals": "poisson"}
    if burstiness != 1.0:
        load |= {"arrivals": "gamma", "burstiness": burstiness}
    name = level_name(load)
    if streams is not None:
        load["concurrency_limit"] = int(streams)
        name = f"{name}, at most {int(streams)} at once"
    return load, name


def _conditions(document: dict[str, Any], total: float | None) -> dict[str, Any]:
    return present(
        {
            "numbers": "measured",
            "model": document.get("model_id"),
            "tokenizer": document.get("tokenizer_id"),
            "client": CLIENT,
            "requests": None if total is None else int(total),
            "time": document.get("date"),
            "throughput_window": WHOLE_RUN,
        }
    )


def _notes(document: dict[str, Any], found: _Read) -> tuple[str, ...]:
    notes = []
    if found.seconds:
        names = ", ".join(sorted(found.seconds))
        notes.append(f"latencies without `_ms` in their names were read as seconds: {names}")
    if any(key.endswith(("_itl_ms", "_itl")) for key in document):
        notes.append(
            "ITL is not compared: a chunk of a stream can carry several tokens; TPOT is compared"
        )
    capped = positive(document.get("max_concurrency")) and positive(document.get("request_rate"))
    if capped:
        notes.append(
            "requests that waited for --max-concurrency are timed from when they were sent, not "
            "from when they were due: under overload TTFT and E2E look better than users saw them"
        )
    absent = [name for name in ("ttft", "tpot", "e2e") if f"{name}_p95_ms" not in found.metrics]
    if found.metrics and absent:
        names = ", ".join(name.upper() for name in absent)
        notes.append(f"the file has no P95 of {names} (--metric-percentiles 50,90,95,99 saves it)")
    return tuple(notes)
