"""Validity gates: what makes a level's figures worth believing. Pure.

Each gate answers with one line that names what was seen and what was needed, or with None.
A level that fails a gate is recorded but never selected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from sweeper.load import server_metrics
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord

MIN_LENGTHS_HONOURED = 0.99
MAX_TOKEN_COUNT_GAP = 0.05
MAX_CLIENT_CPU_SHARE = 0.9
MAX_PREFIX_HIT_SHARE = 0.2
MIN_ACHIEVED_LOAD = 0.9


def delta(run: LevelRun, name: str) -> float | None:
    """How much a server counter grew, None if it is not told or was reset meanwhile."""
    if name not in run.server_before or name not in run.server_after:
        return None
    grown = run.server_after[name] - run.server_before[name]
    return grown if grown >= 0 else None


def successes(run: LevelRun, min_share: float) -> str | None:
    if not run.records:
        return "no request was sent"
    ok = sum(1 for record in run.records if record.outcome is RequestOutcome.OK)
    if ok / len(run.records) >= min_share:
        return None
    failures = Counter(
        record.error or str(record.outcome)
        for record in run.records
        if record.outcome is not RequestOutcome.OK
    )
    (commonest, _), *_ = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    return (
        f"only {ok} of {len(run.records)} requests succeeded, {min_share:.0%} needed; "
        f"most often: {commonest}"
    )


def ended_early(run: LevelRun) -> str | None:
    if run.ended_early is None:
        return None
    return f"ended after {len(run.records)} of {run.requests_asked} requests: {run.ended_early}"


def lengths_honoured(run: LevelRun, ok: Sequence[RequestRecord]) -> str | None:
    kinds: list[tuple[str, list[int | None], int]] = []
    if run.fixed_output:
        kinds.append(("output", [r.output_tokens for r in ok], run.output_tokens_asked))
    if run.exact_input:
        kinds.append(("input", [r.prompt_tokens for r in ok], run.input_tokens_asked))
    for word, lengths, asked in kinds:
        right = sum(1 for length in lengths if length == asked)
        if right < MIN_LENGTHS_HONOURED * len(lengths):
            return f"{word} length of {asked} tokens kept by only {right} of {len(lengths)}"
    return None


def plausible_times(ok: Sequence[RequestRecord]) -> str | None:
    wrong = sum(1 for record in ok if not _plausible(record))
    return f"{wrong} of {len(ok)} requests have impossible times" if wrong else None


def token_counts_agree(run: LevelRun) -> str | None:
    """Client and server must have counted the same output tokens, warm-up excluded by both."""
    served = delta(run, server_metrics.GENERATION_TOKENS)
    if served is None:
        return None
    counted = sum(record.output_tokens or 0 for record in run.records)
    if abs(served - counted) <= MAX_TOKEN_COUNT_GAP * max(served, counted):
        return None
    return (
        f"the client counted {counted} output tokens and the server {served:.0f}; "
        "is somebody else using the server?"
    )


def client_had_headroom(run: LevelRun) -> str | None:
    share = client_cpu_share(run)
    if share is None or share < MAX_CLIENT_CPU_SHARE:
        return None
    return f"the client was the bottleneck: {share:.0%} of a processor core"


def prompts_were_new(run: LevelRun) -> str | None:
    share = prefix_hit_share(run)
    if share is None or share <= MAX_PREFIX_HIT_SHARE:
        return None
    return f"{share:.0%} of prompt tokens came from the prefix cache, though no prompt repeats"


def load_was_kept(run: LevelRun, achieved: float) -> str | None:
    if achieved >= MIN_ACHIEVED_LOAD * run.concurrency:
        return None
    return (
        f"only {achieved:.1f} of {run.concurrency} streams were busy on average; "
        "send more requests a stream"
    )


def client_cpu_share(run: LevelRun) -> float | None:
    """Processor time of the client as a share of one core; None for an empty level."""
    return run.client_cpu_s / run.duration_s if run.duration_s > 0 else None


def prefix_hit_share(run: LevelRun) -> float | None:
    """Prompt tokens found in the prefix cache as a share of those looked up."""
    hits = delta(run, server_metrics.PREFIX_HITS)
    queries = delta(run, server_metrics.PREFIX_QUERIES)
    return hits / queries if hits is not None and queries else None


def _plausible(record: RequestRecord) -> bool:
    first = record.first_token_s
    if first is None or not all(map(math.isfinite, (record.sent_s, first, record.finished_s))):
        return False
    return record.scheduled_s < first <= record.finished_s
