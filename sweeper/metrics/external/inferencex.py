"""Rows of InferenceX (InferenceMAX until 2025): one deployment at one concurrency. Pure.

Latencies carry no unit in their names and are seconds; throughputs are by GPU. How many requests
there were and how many failed is not told.
"""

from __future__ import annotations

from typing import Any

from sweeper.load.level import level_name
from sweeper.metrics.external.result import (
    WHOLE_RUN,
    ForeignLevel,
    ForeignRun,
    positive,
    present,
    time_faults,
    too_few,
)

CLIENT = "InferenceX"
_NEEDED = ("conc", "isl", "osl", "output_tput_per_gpu", "median_ttft")
_LATENCIES = {"ttft": "ttft", "tpot": "tpot", "e2e": "e2el"}
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}


def missing(document: dict[str, Any]) -> list[str]:
    """Fields of the format that the document lacks; empty if it is of this format."""
    return [key for key in _NEEDED if key not in document]


def read(document: dict[str, Any]) -> ForeignRun:
    """The document in this project's names and units."""
    metrics = _metrics(document)
    streams = positive(document.get("conc"))
    load: dict[str, Any] = {"kind": "closed", "concurrency": int(streams or 1)}
    level = ForeignLevel(
        name=level_name(load),
        load=load,
        metrics=metrics,
        n=None,
        reasons=tuple(time_faults(metrics)),
        low_confidence=tuple(too_few(metrics, None)),
    )
    notes = ["latencies are seconds there; throughput is by GPU; nothing is told of failures"]
    if "median_itl" in document:
        notes.append("ITL is not compared: a chunk of a stream can carry several tokens")
    return ForeignRun(CLIENT, _conditions(document), (level,), tuple(notes))


def _metrics(document: dict[str, Any]) -> dict[str, float]:
    metrics = {}
    for ours, theirs in _LATENCIES.items():
        for statistic, word in _STATISTICS.items():
            seconds = positive(document.get(f"{word}_{theirs}"))
            if seconds is not None:
                metrics[f"{ours}_{statistic}_ms"] = 1e3 * seconds
    rate = positive(document.get("output_tput_per_gpu"))
    if rate is not None:
        metrics["output_tokens_per_s_per_gpu"] = rate
    return metrics


def _conditions(document: dict[str, Any]) -> dict[str, Any]:
    spec = str(document.get("spec_decoding", document.get("spec_method", ""))).lower()
    return present(
        {
            "numbers": "measured",
            "model": document.get("model"),
            "input_tokens_asked": document.get("isl"),
            "output_tokens_asked": document.get("osl"),
            "engine": document.get("framework"),
            "engine_build": document.get("image"),
            "gpu": document.get("hw", document.get("device", document.get("hardware"))),
            "precision": document.get("precision"),
            "client": CLIENT,
            "time": document.get("date"),
            "throughput_window": WHOLE_RUN,
            "deployment": {
                **present({"tensor_parallel_size": document.get("tp")}),
                **({"speculative": spec} if spec not in {"", "false", "none"} else {}),
            },
        }
    )
