"""Where the numbers of an exported file come from, as lines of comment and as tags. Pure."""

from __future__ import annotations

from typing import Any

from sweeper.export.admission import sentence
from sweeper.export.bundle import ExportInput
from sweeper.export.checkpoint import made_lines
from sweeper.export.yaml_text import line
from sweeper.pareto.compare import interval_text
from sweeper.pareto.confirmed_words import verdict_text
from sweeper.pareto.recommendation import Recommendation, miss_text

PREDICTED = "PREDICTED, NOT MEASURED"
_FIGURES = (
    ("output_tokens_per_s", "{} output tokens/s"),
    ("ttft_p95_ms", "time to first token P95 {} ms"),
    ("tpot_p95_ms", "time per output token P95 {} ms"),
    ("e2e_p95_ms", "end-to-end P95 {} ms"),
)
_PREFIX = "sweeper"


def title(source: ExportInput) -> str:
    """What the file deploys: whether it is recommended, or was asked for."""
    chosen, name = source.recommendation, line(source.served_name)
    if source.asked_for:
        return f"Deployment of {name} from trial {chosen.trial}, which was asked for"
    if not chosen.keeps_slo:
        return f"Nearest miss for {name}, not a recommendation"
    return f"{'Predicted' if chosen.predicted else 'Recommended'} deployment of {name}"


def origin(source: ExportInput) -> list[str]:
    """What is deployed, what it was measured to do and how sure that is, a line each."""
    chosen = source.recommendation
    return [
        f"{title(source)}: study {line(source.study)}, trial {chosen.trial} "
        f"({line(str(chosen.point['kind']))}), deployment {chosen.point['deployment_hash']}.",
        f"{_word(chosen)} at {line(chosen.level)} (n = {chosen.point['n']} requests): "
        f"{figures(chosen)}.",
        sureness(chosen),
        *slo(chosen),
        f"Engine {line(source.engine)}, on {line(source.hardware)}.",
        sentence(chosen, source.limit),
        *made_lines(source),
        *source.notes,
    ]


def tags(source: ExportInput) -> dict[str, str]:
    """The same for machines: keys of Kubernetes, labels of Docker."""
    chosen = source.recommendation
    told: dict[str, Any] = {
        "study": source.study,
        "trial": chosen.trial,
        "deployment": chosen.point["deployment_hash"],
        "numbers": f"{_word(chosen)} at {chosen.level}: {figures(chosen)}",
        "confirmed": "predicted" if chosen.predicted else str(chosen.confirmed).lower(),
        "engine": source.engine,
        "hardware": source.hardware,
        "admission-limit": source.limit,
        "checkpoint-digest": source.made.get("digest"),
    }
    return {
        f"{_PREFIX}/{name}": line(str(value)) for name, value in told.items() if value is not None
    }


def figures(chosen: Recommendation) -> str:
    """The numbers with their intervals, those that were measured."""
    point = chosen.point
    told = []
    for metric, words in _FIGURES:
        if metric in point:
            interval = interval_text(point, metric)
            told.append(f"{words.format(f'{point[metric]:.4g}')}{interval and f' {interval}'}")
    return ", ".join(told) or "nothing that could be said in numbers"


def sureness(chosen: Recommendation) -> str:
    """How far the numbers can be trusted."""
    if chosen.predicted:
        return "These numbers are predicted, not measured: measure before relying on them."
    if not chosen.confirmed:
        once = int(chosen.point.get("launches", 1)) == 1
        return f"Not confirmed by repeats{': its numbers come from one launch' if once else ''}."
    if chosen.confirmation is None:
        return "Confirmed by repeats."
    told = verdict_text(chosen.confirmation, slo=bool(chosen.slo))
    return f"{line(told[:1].upper() + told[1:])}."


def slo(chosen: Recommendation) -> list[str]:
    """Which promises were made, and whether they are kept; nothing where none was."""
    if not chosen.slo:
        return []
    promised = ", ".join(f"{name}={value:g}" for name, value in chosen.slo.items())
    if chosen.keeps_slo:
        return [f"Keeps the SLO {promised}."]
    return [f"DOES NOT KEEP THE SLO {promised}: {miss_text(chosen.missed, chosen.point)}."]


def _word(chosen: Recommendation) -> str:
    return PREDICTED if chosen.predicted else "Measured"
