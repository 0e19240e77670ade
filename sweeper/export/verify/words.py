"""The verdict of a verification in words: reasons, notes and remedies. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sweeper.export.verify.judge import Figure, LimitCheck, Status
from sweeper.export.verify.outcome import Verification
from sweeper.metrics.percentiles import is_low_confidence
from sweeper.pareto.recommendation import Recommendation
from sweeper.trial.outcome import Point, TrialOutcome

AGAIN = "launch it more often: verify=3"


def of_failure(base: Verification, outcome: TrialOutcome) -> Verification:
    """Of a launch without figures: a fault of the deployment breaks the promise, no other does."""
    is_fault = outcome.verdict.is_config_fault
    cause = outcome.cause or "it measured no valid point at the exported load"
    return replace(
        base,
        status=Status.NOT_KEPT if is_fault else Status.CANNOT_TELL,
        reasons=(f"it ended {outcome.verdict} in phase {outcome.phase}: {cause}",),
        notes=tuple(_notes(base)),
        remedy=outcome.remedy or "see its log, then run the same command again",
        evidence=outcome.evidence,
    )


def of_judgement(
    found: Verification, chosen: Recommendation, points: Sequence[Point]
) -> Verification:
    """Of figures that were judged."""
    parts: list[Figure | LimitCheck] = [*found.limits, *found.figures]
    wanted = [one for one in parts if one.status is found.status]
    reasons = (_kept(found),) if found.is_kept else _broken(wanted)
    notes = [*_notes(found), *_doubts(found, chosen, points)]
    return replace(found, reasons=reasons, notes=tuple(notes), remedy=_remedy(found, chosen))


def _kept(found: Verification) -> str:
    worse = [one for one in found.figures if _is_loss(one)]
    limits = "keeps every limit, and " if found.limits else ""
    if not worse:
        return f"it {limits}gives every figure as promised or better"
    named = ", ".join(one.metric for one in worse)
    return f"it {limits}gives every figure as promised within the noise ({named})"


def _broken(parts: Sequence[Figure | LimitCheck]) -> tuple[str, ...]:
    """One line a cause, with all that it is the cause of."""
    named: dict[str, list[str]] = {}
    for one in parts:
        named.setdefault(one.why, []).append(_named(one))
    return tuple(f"{', '.join(names)}: {why}" for why, names in named.items())


def _named(one: Figure | LimitCheck) -> str:
    if isinstance(one, LimitCheck):
        seen = "" if one.verified is None else f" ({one.verified:.4g} of {one.limit:.4g})"
        return f"limit {one.name}{seen}"
    change = "" if one.change_percent is None else f" {one.change_percent:+.1f} %"
    return f"{one.metric}{change}"


def _is_loss(one: Figure) -> bool:
    if one.change_percent is None:
        return False
    return one.change_percent > 0 if one.metric.endswith("_ms") else one.change_percent < 0


def _notes(found: Verification) -> list[str]:
    """What was started is not what was measured."""
    told = []
    if found.edits:
        edits = ", ".join(f"{name}: {a} → {b}" for name, (a, b) in found.edits.items())
        told.append(f"The file differs from what the study measured ({edits}).")
    if found.changed:
        changes = ", ".join(f"{name}: {a} → {b}" for name, (a, b) in found.changed.items())
        told.append(f"Not as when the study measured it: {changes}.")
    if found.busy:
        told.append(found.busy)
    unknown = [one.name for one in found.arguments if not one.told]
    if unknown:
        told.append(f"The server does not tell {', '.join(unknown)}.")
    return told


def _doubts(found: Verification, chosen: Recommendation, points: Sequence[Point]) -> list[str]:
    """What weakens the comparison."""
    told = []
    if any(one.margin_percent is None for one in found.figures if one.verified is not None):
        told.append(
            "Nothing was launched twice, so that nobody knows how much launches differ here; the "
            "intervals inside the launches stand in for it."
        )
    fewest = min(point.n for point in points)
    if is_low_confidence(fewest, 95):
        told.append(f"Its P95 rests on few requests (n={fewest} a launch).")
    if not chosen.confirmed and found.promised_launches == 1:
        told.append(
            "What is promised was measured once and chosen for it, so that a part of it may have "
            "been luck."
        )
    return told


def _remedy(found: Verification, chosen: Recommendation) -> str:
    """The first way on that applies; empty if the promise is kept."""
    confirm = chosen.to_confirm
    unsure = found.status is Status.CANNOT_TELL
    ways = (
        (found.is_kept, ""),
        (found.busy, f"verify when nothing else uses the machine; {AGAIN}"),
        (unsure and confirm, f"{AGAIN}, or let the study tell the noise: {confirm}"),
        (unsure, AGAIN),
        (found.edits, "measure what the file says (a study with these values), or export anew"),
        (found.changed, "measure again under today's conditions: a study with another name"),
        (confirm, f"confirm the promise, which rests on one launch: {confirm}"),
        (True, "see whether something else uses the machine, then verify again"),
    )
    return next(text for applies, text in ways if applies)
