"""What a study already knows of a deployment's output, so that nothing is measured twice. Pure.

Reading is known by the quality key. Writing is known by key and way of drafting, and one pair of
writings, with and without it, is enough for a way of drafting in the whole study:

    key not known                            read and write
    this drafting not yet judged             write, and compare with the key's plain writing
    broken with this drafting elsewhere,     write: neither may be taken over
      or with this key, drafted otherwise
    anything else                            nothing: the score is taken over
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweeper.quality.written import broken
from sweeper.trial.outcome import QualityScore, TrialOutcome


@dataclass(frozen=True)
class KnownQuality:
    """What is known, and what is left to measure.

    Attributes:
        score: to take over; None if the output must be read.
        to_write: True if the suite must be written although `score` is known.
        plain_written: digests of the key's writing without this drafting, None if there is none.
    """

    score: QualityScore | None = None
    to_write: bool = False
    plain_written: Sequence[str] | None = None


def known_quality(
    outcomes: Iterable[TrialOutcome], key: str, drafting: str, plain: str = ""
) -> KnownQuality:
    """What the trials so far say of a deployment.

    Args:
        outcomes: of the study.
        key: the deployment's quality key.
        drafting: its way of drafting, see `sweeper.quality.key.drafting`.
        plain: that of the defaults, mostly none.
    """
    scores = [outcome.quality for outcome in outcomes if outcome.quality is not None]
    same = [score for score in scores if score.key == key]
    writings = {(s.key, s.written["drafting"]): s.written for s in scores if s.written}
    counterpart = writings.get((key, plain)) if drafting != plain else None
    known = KnownQuality(plain_written=None if counterpart is None else counterpart["digests"])
    if not same:
        return known
    own = writings.get((key, drafting))
    # What was written otherwise is not this deployment's; the plain writing stands in for it.
    written = own or counterpart or {}
    return replace(
        known,
        score=replace(same[0], written=written),
        to_write=own is None and _must_write(writings, key, drafting, plain),
    )


def _must_write(
    writings: dict[tuple[str, str], dict[str, Any]], key: str, drafting: str, plain: str
) -> bool:
    here = {by for of, by in writings if of == key}
    judged = {by for of, by in writings if (of, plain) in writings}
    spoilt = any(
        broken(found) is not None
        for (of, by), found in writings.items()
        if of == key or by == drafting
    )
    return spoilt or (drafting not in judged if drafting != plain else bool(here - judged))
