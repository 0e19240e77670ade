"""Whether two measurements may be compared, and why not. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sweeper.report.comparison.conditions import Row, Status, Weight
from sweeper.report.comparison.side import Side
from sweeper.report.words import number

_DIGEST_CHARACTERS = 32
_ALWAYS_OTHER = frozenset({"time"})


class Fairness(StrEnum):
    FAIR = "fair"
    FAIR_BUT_DEPLOYMENT = "fair except for what was meant to differ: the deployment"
    NOT_KNOWN = "not known to be fair"
    UNFAIR = "unfair"


@dataclass(frozen=True)
class Verdict:
    """Attributes:
    fairness: the word.
    reasons: conditions beyond the deployment that differ, worst first.
    unknown: essential conditions that a side does not tell.
    meant: what of the deployment differs.
    noted: other differences worth knowing.
    """

    fairness: Fairness
    reasons: tuple[str, ...]
    unknown: tuple[str, ...]
    meant: tuple[str, ...]
    noted: tuple[str, ...]

    @property
    def sentence(self) -> str:
        if self.fairness is Fairness.UNFAIR:
            return f"unfair, because beyond the deployment these differ: {'; '.join(self.reasons)}"
        if self.fairness is Fairness.NOT_KNOWN:
            return f"not known to be fair: not told are {', '.join(self.unknown)}"
        if self.fairness is Fairness.FAIR_BUT_DEPLOYMENT:
            return f"{self.fairness} ({', '.join(self.meant)})"
        return str(self.fairness)


def decide(rows: Sequence[Row], a: Side, b: Side) -> Verdict:
    """The verdict over the checklist.

    Within one study everything beyond the deployment is held the same by its identity, so what
    neither side tells there is no obstacle. Of a foreign file too little is known for "fair".
    """
    one_study = a.study is not None and a.study == b.study
    differing = [row for row in rows if row.status is Status.DIFFERS]
    breaks = sorted(
        (row for row in differing if row.condition.weight is Weight.BREAKS),
        key=lambda row: row.condition.rank,
    )
    told = {Status.SAME, Status.DIFFERS}
    unknown = [
        row.condition.label
        for row in rows
        if row.condition.essential
        and row.status not in told
        and not (one_study and row.status is Status.UNKNOWN)
    ]
    foreign = a.foreign or b.foreign
    if foreign and not unknown:
        unknown = ["what the file of another client does not record"]
    meant = dict.fromkeys(
        row.condition.key.partition(":")[2] or row.condition.label
        for row in differing
        if row.condition.weight is Weight.MEANT
    )
    noted = [
        row.condition.label
        for row in differing
        if row.condition.weight is Weight.NOTED and row.condition.key not in _ALWAYS_OTHER
    ]
    if breaks:
        fairness = Fairness.UNFAIR
    elif unknown:
        fairness = Fairness.NOT_KNOWN
    else:
        fairness = Fairness.FAIR_BUT_DEPLOYMENT if meant else Fairness.FAIR
    return Verdict(
        fairness,
        tuple(reason(row) for row in breaks),
        tuple(unknown),
        tuple(meant),
        tuple(noted),
    )


def reason(row: Row) -> str:
    """``engine version (a 0.32.0, b 0.33.0)``."""
    return f"{row.condition.label} (a {value_text(row.a)}, b {value_text(row.b)})"


def value_text(value: object) -> str:
    """A condition's value in words."""
    if value is None:
        return "not told"
    if isinstance(value, dict):
        return ", ".join(f"{k}={value_text(v)}" for k, v in value.items()) or "nothing more"
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    if isinstance(value, float):
        return number(value)
    text = str(value)
    is_digest = len(text) >= _DIGEST_CHARACTERS and not set(text) - set("0123456789abcdef")
    return f"{text[:12]}…" if is_digest else text
