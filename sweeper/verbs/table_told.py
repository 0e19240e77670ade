"""What a study of a table says of it: first what is replayed, at the end what was missed."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.config.schema import ObjectiveConfig, SloConfig
from sweeper.engine.replay.table import Table
from sweeper.report.regret_text import render_regret
from sweeper.report.words import deployment_text
from sweeper.search.regret import regret
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict


def introduced(table: Table) -> list[str]:
    """What a study of a table says first: what is replayed, and what it begins with."""
    contents, rows = table.contents, table.rows
    failed = sum(row.verdict is not Verdict.OK for row in rows)
    levels = ", ".join(f"{streams or rate:g}" for _, streams, rate in table.ladder)
    what = "requests a second" if table.ladder[0][1] is None else "streams"
    spent_s = [row.virtual_s for row in rows if row.virtual_s is not None]
    cost = f"; all of them took {sum(spent_s) / 3600:.3g} h" if len(spent_s) == len(rows) else ""
    told = [
        f"{table.told_source}; {len(rows)} deployments ({failed} that failed) at {levels} {what}"
        f"{cost}",
        f"the baseline is {deployment_text(table.baseline.deployment)}",
    ]
    return [*told, *(f"left out of the table: {note}" for note in contents.notes)]


def against_table(
    outcomes: Sequence[TrialOutcome], table: Table, objective: ObjectiveConfig, slo: SloConfig
) -> str:
    """Whose figures a finished study rests on, and what it missed of them."""
    found = regret(outcomes, table, objective, slo)
    return table.told_source + ("" if found is None else f"\n{render_regret(found)}")
