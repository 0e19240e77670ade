"""Under which conditions the numbers hold, how to make them again, and what the words mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sweeper.redaction import shown
from sweeper.report.tables import folded, table
from sweeper.trial.outcome import TrialOutcome

_REPLAYED = "replayed from"
_ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Model", "model", ("name", "revision", "licence", "source", "digest")),
    ("Engine", "engine", ("name", "version", "distribution", "device")),
    ("Built with", "engine.details", ()),
    (
        "Hardware",
        "hardware",
        ("name", "device_count", "memory_gib", "cpu_cores", "driver", "cuda", "peaks_source"),
    ),
    ("Precision", "", ("precision", "quantization", "devices")),
    ("Workload", "workload", ()),
    ("Decoding", "decoding", ()),
    ("Load", "load", ()),
    ("Client", "client", ()),
    ("Began", "", ("started_at",)),
)
"""(title, part of the manifest, its fields in order; none for all)."""


def manifest_of(outcomes: Sequence[TrialOutcome]) -> Mapping[str, Any] | None:
    """Of the first trial that was measured."""
    return next((o.manifest for o in outcomes if o.manifest and o.points), None)


def replayed_from(outcomes: Sequence[TrialOutcome]) -> str:
    """``replayed from TABLE``, empty where the engine answered itself."""
    manifest = manifest_of(outcomes) or {}
    source = str(_part(manifest, "engine.details").get("source", ""))
    return source if source.startswith(_REPLAYED) else ""


def conditions_line(outcomes: Sequence[TrialOutcome]) -> str:
    """Model, engine, hardware and workload in one line; empty where nothing was measured."""
    manifest = manifest_of(outcomes)
    if manifest is None:
        return ""
    model, engine, hardware, work = (
        _part(manifest, name) for name in ("model", "engine", "hardware", "workload")
    )
    count = hardware.get("device_count")
    devices = f"{count} x {hardware['name']}" if count and hardware.get("name") else ""
    tokens = [work.get(f"{end}_tokens") for end in ("input", "output")]
    lengths = f" ({tokens[0]} tokens in, {tokens[1]} out)" if None not in tokens else ""
    parts = (
        str(model.get("name") or ""),
        " ".join(str(engine[key]) for key in ("name", "version") if engine.get(key)),
        devices,
        f"workload {work['name']}{lengths}" if work.get("name") else "",
    )
    return " · ".join(part for part in parts if part)


def condition_rows(outcomes: Sequence[TrialOutcome]) -> list[list[str]]:
    """(condition, value) of the first measured trial; empty where nothing was measured."""
    manifest = manifest_of(outcomes) or {}
    return [
        [title, text]
        for title, part, names in _ROWS
        if (text := _told(_part(manifest, part), names))
    ]


def conditions(outcomes: Sequence[TrialOutcome]) -> str:
    """The manifest as a table, and all of it behind a fold."""
    manifest = manifest_of(outcomes)
    if manifest is None:
        return ""
    whole = json.dumps(manifest, indent=2, default=str, ensure_ascii=False, sort_keys=True)
    return (
        "<p class=sub>Of the first measured trial. Every trial's own are in trials.jsonl.</p>"
        + table(["Condition", "Value"], condition_rows(outcomes), wide=[1])
        + folded("The whole manifest", f"<pre>{escape(shown(whole))}</pre>")
    )


def _part(manifest: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    found: Any = manifest
    for name in path.split(".") if path else ():
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _told(part: Mapping[str, Any], names: Sequence[str]) -> str:
    """``name vllm, version 0.32.0``; what is not set says nothing."""
    fields = [(name, part.get(name)) for name in (names or part)]
    return ", ".join(
        f"{name.replace('_', ' ')} {_value(value)}"
        for name, value in fields
        if value not in (None, "", [], {})
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        told = ", ".join(f"{k} {_value(v)}" for k, v in value.items() if v not in (None, "", {}))
        return f"({told})"
    if isinstance(value, list):
        return "/".join(str(one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def reproduce(commands: Sequence[tuple[str, str]]) -> str:
    """What to type, one block a step; empty without any.

    Args:
        commands: (what it does, what to type).
    """
    if not commands:
        return ""
    blocks = "".join(
        f"<p>{escape(shown(what))}</p><pre class=command>{escape(shown(command))}</pre>"
        for what, command in commands
    )
    note = (
        "Numbers are comparable only under the conditions above. The same deployment on the same "
        "machine differs from one launch to the next: compare intervals, not digits."
    )
    return f"<p class=sub>{note}</p>{blocks}"


_TERMS: tuple[tuple[str, str], ...] = (
    ("Deployment", "Everything that starts the server: engine, weights, settings, devices."),
    ("Launch, trial", "One deployment, started once and driven at every load level."),
    ("Operating point", "A trial at one load level. The front and the recommendation are points."),
    ("Baseline", "The engine's own defaults, always the first launch."),
    (
        "Load level",
        "How the server is driven. Concurrency: so many streams, each sending its next request "
        "when the last has ended. Requests/s: they come by the clock, answered or not.",
    ),
    ("TTFT", "Time to first token, from when the request was due: queueing and prefill."),
    ("TPOT", "Time per output token after the first: decode."),
    ("E2E", "From when the request was due until its last token."),
    ("P95", "19 of 20 requests were at least as fast. Below 200 requests it rests on few."),
    ("Tokens/s per device", "Output tokens of the whole system, by device: what a GPU earns."),
    ("Tokens/s per user", "Output tokens by stream, waiting included: what one user sees."),
    (
        "Pareto front",
        "Points that no other beats in throughput, latency and quality at once; with repeats, "
        "those within the noise of it too.",
    ),
    ("Knee", "The point of the front where one more gain in one figure starts to cost most."),
    ("SLO", "The promise: limits that the P95 latencies must keep."),
    ("95 % interval", "Where the true figure lies in 19 of 20 such measurements."),
    (
        "Confirmed",
        "The best and the defaults were launched again in turns, and only those launches count: "
        "the search's own figure of its winner owes a part to luck.",
    ),
    (
        "Agreement",
        "Share of the reference's tokens that this deployment also ranks first. The reference is "
        "the unquantized model under the engine's defaults; a change inside the error is none.",
    ),
    (
        "Speed of light",
        "What memory bandwidth and arithmetic allow at most: predicted, never measured.",
    ),
    ("Predicted, replayed", "From a model of an engine, or read from a table: nothing was run."),
    ("CAPACITY, INFEASIBLE_CONFIG", "Does not fit in memory; refused by the engine or arithmetic."),
    ("QUALITY_FAIL", "Fast, but the output is broken: below the quality floor."),
    (
        "CRASH_UNDER_LOAD, STARTUP_TIMEOUT",
        "Started and then died or hung; was not ready in time.",
    ),
    ("MEASUREMENT_INVALID, INFRA", "The measurement cannot be trusted; the machine was at fault."),
)


def glossary() -> str:
    """The words of this page."""
    terms = "".join(f"<dt>{escape(word)}</dt><dd>{escape(said)}</dd>" for word, said in _TERMS)
    return folded("What the words mean", f"<dl class=terms>{terms}</dl>")
