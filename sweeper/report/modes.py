"""One stream's speed and the system's, prefill and decode: apart, by load level. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweeper.pareto.points import latest_attempts
from sweeper.report.tables import folded, table
from sweeper.report.words import deployment_text, level_text, number
from sweeper.trial.outcome import Point, TrialOutcome

_SPEEDS = {
    "single_stream_tokens_per_s": "one stream alone",
    "output_tokens_per_s": "system",
    "output_tokens_per_s_per_gpu": "system, per device",
    "output_tokens_per_s_per_user": "per user",
}
_PREFILL = {
    "ttft_p50_ms": "TTFT P50 ms",
    "ttft_p95_ms": "TTFT P95 ms",
    "prefill_tokens_per_s_per_gpu": "prompt tokens/s, per device",
    "prefill_tokens_per_s_per_user": "prompt tokens/s, per user",
}
_DECODE = {
    "decode_batch_mean": "requests decoding",
    "tpot_p50_ms": "TPOT P50 ms",
    "tpot_p95_ms": "TPOT P95 ms",
    "decode_tokens_per_s_per_gpu": "output tokens/s, per device",
    "decode_tokens_per_s_per_user": "output tokens/s, per user",
}
_TTFT = {"ttft_p50_ms": "TTFT P50 ms", "ttft_p95_ms": "TTFT P95 ms"}
_DETAILS: dict[str, tuple[str, dict[str, str]]] = {
    "ttft_by_input": (
        "Prefill: TTFT by input length",
        {"input_tokens_mean": "prompt tokens", "n": "n", **_TTFT},
    ),
    "by_turn": (
        "Conversations: TTFT by turn",
        {"turn": "earlier turns", "n": "n", "input_tokens_mean": "prompt tokens", **_TTFT},
    ),
    "segments": (
        "Ramp: latency by the rate at which requests came",
        {
            "request_rate_offered_per_s": "requests/s",
            "n": "n",
            "ttft_p95_ms": "TTFT P95 ms",
            "e2e_p95_ms": "E2E P95 ms",
        },
    ),
}


def modes(outcomes: Sequence[TrialOutcome], recommended: int | None) -> str:
    """Tables of the recommended trial and of the baseline; nothing if neither has a valid point.

    Args:
        outcomes: of the study.
        recommended: number of the recommended trial, None without one.
    """
    shown = [
        outcome
        for outcome in latest_attempts(outcomes)
        if outcome.valid_points and (outcome.number == recommended or outcome.kind == "baseline")
    ]
    if not shown:
        return ""
    parts = [
        _by_level(shown, metrics, title)
        for title, metrics in (
            ("Output tokens/s", _SPEEDS),
            ("Prefill: TTFT", _PREFILL),
            ("Decode: TPOT by requests decoding", _DECODE),
        )
    ]
    parts += [_detail(shown, kind, *told) for kind, told in _DETAILS.items()]
    return folded("Speed by kind, recommended and baseline", "\n".join(filter(None, parts)))


def _by_level(shown: Sequence[TrialOutcome], metrics: Mapping[str, str], title: str) -> str:
    rows, looks = [], []
    for outcome in shown:
        for point in outcome.valid_points:
            values = [number(point.metrics.get(name)) for name in metrics]
            rows.append([*_place(outcome, point), *values])
            looks.append(outcome.kind)
    columns = ["Trial", "Load", "Deployment", *metrics.values()]
    numeric = [0, *range(3, len(columns))]
    return table(columns, rows, looks=looks, numeric=numeric, wide=[2], caption=title)


def _detail(
    shown: Sequence[TrialOutcome], kind: str, title: str, columns: Mapping[str, str]
) -> str:
    """A table of one of the lists that a point's load may carry; nothing if no point has it."""
    rows, looks = [], []
    for outcome in shown:
        for point in outcome.valid_points:
            for part in point.load.get(kind, []):
                rows.append([*_place(outcome, point), *(number(part.get(c)) for c in columns)])
                looks.append(outcome.kind)
    heads = ["Trial", "Load", "Deployment", *columns.values()]
    if not rows:
        return ""
    numeric = [0, *range(3, len(heads))]
    return table(heads, rows, looks=looks, numeric=numeric, wide=[2], caption=title)


def _place(outcome: TrialOutcome, point: Point) -> list[str]:
    level = level_text({"level": point.level, "saturated": point.load.get("saturated")})
    return [str(outcome.number), level, deployment_text(outcome.deployment)]
