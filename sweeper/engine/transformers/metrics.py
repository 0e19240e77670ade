"""`/metrics` in Prometheus text form, under the names that vLLM gives the same things. Pure."""

from __future__ import annotations

from sweeper.engine.transformers.jobs import Board


def exposition(board: Board, served_name: str) -> str:
    """Counters from the start, and how many requests wait and run now.

    What this engine does not have (preemptions, a prefix cache's hits) is absent.
    """
    label = f'engine="0",model_name="{served_name}"'
    values: dict[str, tuple[str, float | None]] = {
        "vllm:prompt_tokens_total": ("counter", board.prompt_tokens),
        "vllm:generation_tokens_total": ("counter", board.generation_tokens),
        "vllm:num_requests_running": ("gauge", len(board.running)),
        "vllm:num_requests_waiting": ("gauge", len(board.waiting)),
        "vllm:spec_decode_num_drafts_total": ("counter", board.drafts),
        "vllm:spec_decode_num_draft_tokens_total": ("counter", board.draft_tokens),
        "vllm:spec_decode_num_accepted_tokens_total": ("counter", board.accepted_tokens),
    }
    lines = []
    for name, (kind, value) in values.items():
        if value is not None:
            lines += [_type(name, kind), f"{name}{{{label}}} {float(value)}"]
    success = "vllm:request_success_total"
    lines.append(_type(success, "counter"))
    for reason in ("stop", "length", "abort"):
        count = float(board.finished[reason])
        lines.append(f'{success}{{{label},finished_reason="{reason}"}} {count}')
    return "\n".join(lines) + "\n"


def _type(name: str, kind: str) -> str:
    return f"# TYPE {name.removesuffix('_total') if kind == 'counter' else name} {kind}"
