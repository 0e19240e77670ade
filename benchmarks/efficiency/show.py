"""The figures as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.efficiency.figures import (
    LAUNCHES,
    TIME,
    Cell,
    Spread,
    cells,
    is_loss,
    over_problems,
)
from benchmarks.efficiency.policies import OURS, POLICIES, RANDOM
from benchmarks.efficiency.runs import Record
from benchmarks.efficiency.study import FRACTIONS, FRONTIER, SLO

TITLES = {
    FRONTIER: "hypervolume of the front (objective=frontier)",
    SLO: "throughput under the SLO (objective=slo)",
}


def summary(records: Sequence[Record]) -> str:
    """One line a policy: ratio against random, median over problems, for every fraction."""
    heads = [f"{kind} {fraction:.0%}" for kind in (FRONTIER, SLO) for fraction in FRACTIONS]
    lines = [
        "Launches over random's, median over problems [95 % interval]; in brackets behind it the "
        "same for virtual time; below 1 is better.",
        "",
        f"| policy | {' | '.join(heads)} | lost to random |",
        "|---|" + "---|" * (len(heads) + 1),
    ]
    for name in _policies(records):
        if name == RANDOM.name:
            continue
        told, lost, compared = [], 0, 0
        for kind in (FRONTIER, SLO):
            for fraction in FRACTIONS:
                own = _of(cells(records, kind, fraction), name)
                time = _of(cells(records, kind, fraction, TIME), name)
                told.append(_ratio_text(own, time))
                known = [cell for cell in own if cell.ratio is not None]
                compared += len(known)
                lost += sum(is_loss(cell) for cell in known)
        lines.append(f"| {name} | {' | '.join(told)} | {lost} of {compared} |")
    return "\n".join(lines)


def by_problem(records: Sequence[Record], kind: str, fraction: float) -> str:
    """Launches of every policy on every problem; losses against random are marked."""
    found = cells(records, kind, fraction)
    names = _policies(records)
    problems = list(dict.fromkeys(problem for problem, _ in found))
    lines = [
        f"Launches until {fraction:.0%} of the best {TITLES[kind]}, median [95 % interval]; "
        "**L** lost to random by more than noise.",
        "",
        f"| problem | {' | '.join(names)} |",
        "|---|" + "---:|" * len(names),
    ]
    for problem in problems:
        row = [found.get((problem, name)) for name in names]
        lines.append(f"| {problem} | {' | '.join(_cell_text(cell) for cell in row)} |")
    return "\n".join(lines)


def losses(records: Sequence[Record]) -> list[str]:
    """Every comparison that ours lost to random by more than noise, one line each."""
    found = []
    for kind in (FRONTIER, SLO):
        for fraction in FRACTIONS:
            for (problem, policy), cell in cells(records, kind, fraction).items():
                if policy.startswith("ours") and is_loss(cell) and cell.ratio is not None:
                    found.append(
                        f"{problem}, {kind} {fraction:.0%}, {policy}: {cell.ratio.at:.2f} times "
                        f"random's launches [{cell.ratio.low:.2f}, {cell.ratio.high:.2f}]"
                    )
    return found


def headline(records: Sequence[Record], fraction: float = 0.95) -> str:
    """The last line of a run."""
    own = _of(cells(records, FRONTIER, fraction), OURS.name)
    ratios = [cell.ratio.at for cell in own if cell.ratio is not None]
    middle = over_problems(ratios)
    if middle is None:
        return f"median ratio against random to {fraction:.0%}: not known, nobody came so far"
    return (
        f"median ratio of launches against random to {fraction:.0%} of the best hypervolume, "
        f"{len(ratios)} problems: {middle.at:.2f}"
    )


def _policies(records: Iterable[Record]) -> list[str]:
    present = {record.policy for record in records}
    return [policy.name for policy in POLICIES if policy.name in present]


def _of(found: dict[tuple[str, str], Cell], policy: str) -> list[Cell]:
    return [cell for (_, name), cell in found.items() if name == policy]


def _ratio_text(launches: Sequence[Cell], time: Sequence[Cell]) -> str:
    middle = over_problems([cell.ratio.at for cell in launches if cell.ratio is not None])
    if middle is None:
        return "-"
    in_time = over_problems([cell.ratio.at for cell in time if cell.ratio is not None])
    behind = "" if in_time is None else f" ({_number(in_time.at)})"
    return f"{_number(middle.at)} [{_number(middle.low)}, {_number(middle.high)}]{behind}"


def _cell_text(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    mark = " **L**" if is_loss(cell) else ""
    return f"{_spread_text(cell.own)}{mark}"


def _spread_text(found: Spread) -> str:
    return f"{_count(found.at)} [{_count(found.low)}, {_count(found.high)}]"


def _count(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "never"


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "∞"


__all__ = ["LAUNCHES", "by_problem", "headline", "losses", "summary"]
