"""Where a deployment comes from and what it was measured to do. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sweeper.config.trust import FLAG
from sweeper.export import markdown
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.checkpoint import cache_warning, made_lines
from sweeper.load.level import CLOSED, OPEN
from sweeper.pareto.compare import interval_text
from sweeper.pareto.confirmed_words import verdict_text
from sweeper.pareto.recommendation import Recommendation
from sweeper.redaction import redact_data

_QUALITY = "quality"
_ROWS = (
    ("output_tokens_per_s", "Output tokens/s, whole system"),
    ("output_tokens_per_s_per_gpu", "Output tokens/s per device"),
    ("e2e_p95_ms", "End-to-end latency P95, ms"),
    ("ttft_p95_ms", "Time to first token P95, ms"),
    ("tpot_p95_ms", "Time per output token P95, ms"),
    (_QUALITY, "Quality"),
)


def render(source: ExportInput) -> Files:
    """``recommendation.json`` and ``README.md``."""
    text = json.dumps(facts(source), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return {"recommendation.json": File(text + "\n"), "README.md": File(readme(source))}


def facts(source: ExportInput) -> dict[str, Any]:
    """Everything the export says, as plain data without secrets."""
    return {
        "study": source.study,
        "engine": source.engine,
        "hardware": source.hardware,
        "model": source.model_path,
        "revision": source.revision,
        "served_name": source.served_name,
        "flags": source.public_flags,
        "env": source.public_env,
        **({"made": redact_data(dict(source.made))} if source.made else {}),
        **admission(source.recommendation),
        "recommendation": redact_data(source.recommendation.to_dict()),
    }


def readme(source: ExportInput) -> str:
    """What this deployment is, in Markdown."""
    sections = [
        f"# Recommended deployment of {markdown.text(source.served_name)}",
        _status(source),
        f"{markdown.sentence(source.recommendation.headline)}\n\n{markdown.sentence(source.recommendation.reason)}",
        _start(source),
        _limit(source),
        _measured(source),
        _origin(source),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _status(source: ExportInput) -> str:
    chosen = source.recommendation
    warnings = []
    if not chosen.keeps_slo:
        warnings.append(
            "> **It does not keep the SLO.** No measured deployment does; this one comes nearest."
        )
    if chosen.predicted:
        warnings.append("> **Predicted, not measured.** Measure it before relying on it.")
    elif not chosen.confirmed:
        warnings.append(f"> **Not confirmed by repeats.** {_unconfirmed(chosen)}")
    elif chosen.confirmation is not None:
        told = verdict_text(chosen.confirmation, slo=bool(chosen.slo))
        warnings.append(f"> {markdown.sentence(told[:1].upper() + told[1:])}.")
    if source.public_flags.get(FLAG) is True:
        warnings.append(
            "> **It runs code that comes with the model** (`trust_remote_code`): read that code "
            "before the start, and pin the model's revision."
        )
    if source.made:
        warnings.append(
            f"> **Its checkpoint lies in a cache.** {markdown.sentence(cache_warning(source))}"
        )
    return "\n>\n".join(warnings)


def _unconfirmed(chosen: Recommendation) -> str:
    how = f" To confirm it: {markdown.code(chosen.to_confirm)}" if chosen.to_confirm else ""
    if chosen.confirmation is not None:
        return f"Fresh launches beside the defaults did not settle it.{how}"
    return f"Its numbers come from one launch.{how}"


def _start(source: ExportInput) -> str:
    lines = [
        "## Start",
        "",
        "```sh",
        "./start.sh                                # PYTHON=... names vLLM's interpreter",
        "vllm serve --config vllm.yaml             # the same, without the environment it sets",
        "```",
    ]
    if source.left_out:
        names = ", ".join(markdown.code(name) for name in source.left_out)
        lines += ["", f"Secrets are not exported. Set before the start: {names}."]
    return "\n".join(lines)


def admission(chosen: Recommendation) -> dict[str, Any]:
    """How much load the numbers stand for: plain data, only what the kind of load has.

    ``admission_limit_streams`` of a closed loop; ``admission_limit_requests_per_s`` of a steady
    rate, and ``concurrent_requests`` that were under way at it, on average. A ramp, a replay or a
    batch holds no load steady, and has neither limit.
    """
    told: dict[str, Any] = {"load_level": chosen.level}
    if chosen.load_kind == CLOSED:
        told["admission_limit_streams"] = chosen.concurrency
    elif chosen.load_kind == OPEN:
        told["admission_limit_requests_per_s"] = chosen.rate_per_s
    under_way = chosen.point.get("achieved_concurrency")
    if chosen.load_kind != CLOSED and under_way is not None:
        told["concurrent_requests"] = round(float(under_way), 2)
    return told


def _limit(source: ExportInput) -> str:
    told = admission(source.recommendation)
    beyond = "Limit admission to that (in the gateway, say) and add replicas beyond it."
    if (streams := told.get("admission_limit_streams")) is not None:
        text = f"The numbers hold up to **{streams} concurrent streams** a server. {beyond}"
    elif (rate := told.get("admission_limit_requests_per_s")) is not None:
        text = f"The numbers hold up to **{rate:g} requests/s** a server{_arrivals(told)}. {beyond}"
    else:
        text = (
            f"Measured with a **{told['load_level']}**{_under_way(told)}. It held no load steady, "
            "so that no limit for admission follows from it: measure one with load=closed or "
            "load=open."
        )
    if source.recommendation.point.get("saturated"):
        text += (
            "\n\n> **The server could not keep up with this load.** Its latencies grow for as long "
            "as the load lasts: admit less."
        )
    return f"## Load\n\n{text}"


def _arrivals(told: Mapping[str, Any]) -> str:
    """The pattern of arrivals, from the level's name, and how many requests were under way."""
    _, _, pattern = str(told["load_level"]).partition(" (")
    return f" ({pattern.removesuffix(')')} arrivals{_under_way(told)})"


def _under_way(told: Mapping[str, Any]) -> str:
    requests = told.get("concurrent_requests")
    return "" if requests is None else f", {requests:g} of them under way on average"


def _measured(source: ExportInput) -> str:
    chosen = source.recommendation
    word = "Predicted" if chosen.predicted else "Measured"
    lines = [
        f"## {word} at {chosen.level} (n = {chosen.point['n']} requests)",
        "",
        "| Metric | This deployment | 95 % interval | Engine defaults, same load | Ratio |",
        "|---|---:|---:|---:|---:|",
    ]
    for metric, label in _ROWS:
        if metric in chosen.point:
            lines.append(_row(chosen.point, chosen.baseline or {}, metric, label))
    if chosen.baseline is None:
        lines += ["", "The engine's defaults have no valid measurement at this load."]
    return "\n".join(lines)


def _row(point: Mapping[str, Any], baseline: Mapping[str, Any], metric: str, label: str) -> str:
    if metric == _QUALITY:
        return _quality_row(point, baseline, label)
    mark = " (uncertain)" if metric in str(point.get("low_confidence", "")).split() else ""
    reference = baseline.get(metric)
    cells = [
        label + mark,
        f"{point[metric]:.4g}",
        interval_text(point, metric) or "—",
        "—" if reference is None else f"{reference:.4g}",
        "—" if not reference else f"{point[metric] / reference:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _quality_row(point: Mapping[str, Any], baseline: Mapping[str, Any], label: str) -> str:
    """The quality that ranked, by name; its multiple says nothing where less is better."""
    name = str(point.get("quality_name", label))
    shown = [str(row.get("quality_shown", "—")) for row in (point, baseline)]
    return f"| {markdown.text(name[:1].upper() + name[1:])} | {shown[0]} | — | {shown[1]} | — |"


def _origin(source: ExportInput) -> str:
    chosen = source.recommendation
    lines = [
        "## Origin",
        "",
        f"- Study {markdown.code(source.study)}, trial {chosen.trial} "
        f"({markdown.text(chosen.point['kind'])}), deployment "
        f"{markdown.code(chosen.point['deployment_hash'])}.",
        f"- Engine: {markdown.text(source.engine)}. Another version may behave differently.",
        f"- Hardware: {markdown.text(source.hardware)}.",
        f"- Model: {markdown.code(source.model_path)}"
        + (f" at revision {markdown.code(source.revision)}." if source.revision else "."),
        *(f"- {markdown.text(line)}" for line in made_lines(source)[:1]),
        f"- Deployment: {_deployment(chosen.deployment)}.",
        *(f"- {markdown.text(note)}" for note in source.notes),
    ]
    return "\n".join(lines)


def _deployment(deployment: Mapping[str, Any]) -> str:
    if not deployment:
        return "the engine's defaults"
    return ", ".join(markdown.code(f"{name}={deployment[name]}") for name in sorted(deployment))
