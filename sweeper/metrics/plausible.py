"""Which successful requests can be believed. Pure.

What cannot be true is kept out of every figure and named: a clock that jumped, a server that
counts nonsense. One such request is reason enough to distrust its level.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sweeper.load.level import BATCH
from sweeper.load.records import LevelRun, RequestOutcome, RequestRecord

_EARLY_S = 0.005  # a timer may fire a little before its time
_LATE_S, _LATE_SHARE = 0.1, 0.01  # of the level's end, noted after the last request's


@dataclass(frozen=True)
class Sorted:
    """Successful requests of one run.

    Attributes:
        believed: those whose times and counts can be true.
        faults: what is wrong with the others → how many.
    """

    believed: tuple[RequestRecord, ...]
    faults: Counter[str]


def sort_out(run: LevelRun) -> Sorted:
    """Part the successful requests of a run into what can be true and what cannot."""
    ok = [record for record in run.records if record.outcome is RequestOutcome.OK]
    end_s = _level_end_s(run)
    judged = [(record, fault(record, run, end_s)) for record in ok]
    believed = tuple(record for record, word in judged if word is None)
    return Sorted(believed, Counter(word for _, word in judged if word is not None))


def faults_reason(parts: Iterable[Sorted]) -> str | None:
    """One line on what cannot be believed, None if everything can."""
    faults: Counter[str] = Counter()
    total = 0
    for part in parts:
        faults += part.faults
        total += len(part.believed) + part.faults.total()
    if not faults:
        return None
    told = ", ".join(f"{n} with {word}" for word, n in sorted(faults.items()))
    return f"{faults.total()} of {total} requests have impossible times or counts: {told}"


def fault(record: RequestRecord, run: LevelRun, level_end_s: float = math.inf) -> str | None:
    """What cannot be true of a successful request, None if everything can."""
    return _times(record, run, level_end_s) or _counts(record, run)


def _times(record: RequestRecord, run: LevelRun, level_end_s: float) -> str | None:
    first, end = record.first_token_s, record.finished_s
    if first is None and run.level.kind != BATCH:
        return "no first token"
    told = (record.scheduled_s, record.sent_s, end, *(() if first is None else (first,)))
    checks = (
        (not all(map(math.isfinite, told)), "a time that is no number"),
        (min(told) < -_EARLY_S, "a time before the level began"),
        (record.sent_s < record.scheduled_s - _EARLY_S, "sending before it was due"),
        (first is not None and first <= record.sent_s, "a first token before it was sent"),
        (end <= record.sent_s, "an end before it was sent"),
        (first is not None and end < first, "an end before its first token"),
        (end > level_end_s, "an end after that of the level"),
    )
    return next((word for wrong, word in checks if wrong), None)


def _counts(record: RequestRecord, run: LevelRun) -> str | None:
    prompt, output, asked = record.prompt_tokens, record.output_tokens, record.output_tokens_asked
    if prompt is None or output is None:
        return "no token counts"
    if prompt <= 0 or output <= 0:
        return "token counts that are not positive"
    if asked is not None and output > asked * run.beam_width:
        return "more output tokens than its limit"
    return None


def _level_end_s(run: LevelRun) -> float:
    """When the level was over: a duration counts from the first request."""
    if not math.isfinite(run.duration_s) or run.duration_s <= 0:
        return math.inf
    sent = [record.sent_s for record in run.records if record.sent_s >= 0]
    return min(sent, default=0.0) + run.duration_s * (1 + _LATE_SHARE) + _LATE_S
