"""Where a deployment comes from and what it was measured to do. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from sweeper.config.trust import FLAG
from sweeper.export import admission, markdown, secrets
from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.checkpoint import cache_warning, made_lines
from sweeper.export.container import name_of
from sweeper.export.origin import title
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

_FILES = {
    "vllm.yaml": ("vLLM's own `--config`", "{serve} --config vllm.yaml"),
    "start.sh": ("the same, with the environment it needs", "./start.sh"),
    "compose.yaml": ("Docker Compose", "docker compose up -d"),
    "nginx.conf": ("proxy that holds to the limit", "docker compose --profile gate up -d"),
    "k8s.yaml": ("Kubernetes: ConfigMap, Deployment, Service", "kubectl apply -f k8s.yaml"),
    "kserve.yaml": ("KServe: InferenceService", "kubectl apply -f kserve.yaml"),
    "helm-values.yaml": (
        "Helm values of vLLM's production-stack",
        "helm install llm vllm/vllm-stack -f helm-values.yaml",
    ),
    "vllm.service": ("systemd unit (see its head for the set-up)", "sudo systemctl start {name}"),
    "sglang.sh": ("nearest flags of SGLang, not measured", "./sglang.sh"),
    "trtllm.sh": ("nearest flags of TensorRT-LLM, not measured", "./trtllm.sh"),
    "trtllm.yaml": ("what of them has no flag", ""),
}
"""File → what it is, and how it is started."""


def render(source: ExportInput, files: Collection[str] = ()) -> Files:
    """``recommendation.json``, and a ``README.md`` that tells what the other `files` are."""
    text = json.dumps(facts(source), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return {"recommendation.json": File(text + "\n"), "README.md": File(readme(source, files))}


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
        **admission.admission(source.recommendation),
        "asked_for": source.asked_for,
        "recommendation": redact_data(source.recommendation.to_dict()),
    }


def readme(source: ExportInput, files: Collection[str] = ()) -> str:
    """What this deployment is, in Markdown."""
    sections = [
        f"# {markdown.text(title(source))}",
        _status(source),
        f"{markdown.sentence(source.recommendation.headline)}\n\n{markdown.sentence(source.recommendation.reason)}",
        _start(source, files),
        f"## Load\n\n{admission.markdown(source.recommendation, source.limit)}",
        _measured(source),
        _origin(source),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _status(source: ExportInput) -> str:
    chosen = source.recommendation
    warnings = []
    if source.asked_for:
        warnings.append(
            "> **Not a recommendation.** The trial was asked for by its number, whatever the study "
            "recommends."
        )
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


def _start(source: ExportInput, files: Collection[str]) -> str:
    """A row for each file that is there, with how it is started."""
    names = {"name": name_of(source), "serve": source.measured_on.serve}
    rows = [
        f"| `{file}` | {what} | {command and f'`{command.format(**names)}`'} |"
        for file, (what, command) in _FILES.items()
        if file in files
    ]
    head = ["| File | What it is | Start |", "|---|---|---|"]
    lines = ["## Start", "", *head, *rows] if rows else []
    named = [*secrets.needed(source), *secrets.lost_flags(source)]
    wanted = [markdown.code(name) for name in named]
    if wanted:
        lines += ["", f"Secrets are not exported. Set before the start: {', '.join(wanted)}."]
    return "\n".join(lines)


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
