"""What a search of a table missed, in a sentence or two. Pure."""

from __future__ import annotations

from sweeper.report.words import METRIC_LABELS, deployment_text, number
from sweeper.search.regret import Best, Regret

WHOLE_SHARE = 0.9995
"""From here on a share is shown as all there was."""


def render_regret(regret: Regret) -> str:
    """The study against the best of its whole table."""
    head = (
        f"against the whole table: {regret.launches} launches of {regret.deployments} deployments "
        f"found {_volume(regret)}"
    )
    return f"{head}\n{_best(regret)}"


def _volume(regret: Regret) -> str:
    if regret.volume_share >= WHOLE_SHARE:
        return "all of its hypervolume"
    whole = regret.volume_in_table
    missed = f"{whole - regret.volume:.3g} of {whole:.3g} nats² missed"
    return f"{regret.volume_share:.1%} of its hypervolume ({missed})"


def _best(regret: Regret) -> str:
    label = METRIC_LABELS.get(regret.metric, regret.metric)
    what = f"highest {label}" + (" that keeps the promise" if regret.promised else "")
    if regret.in_table is None:
        return f"{what}: nothing in the table keeps it"
    if regret.found is None:
        return f"{what}: none found; the table has {_told(regret.in_table)}"
    short = 1 - regret.found.value / regret.in_table.value
    if short < 1 - WHOLE_SHARE:
        return f"{what}: {number(regret.found.value)}, the best of the table"
    return (
        f"{what}: {number(regret.found.value)}, {short:.1%} below the best of the table, "
        f"{_told(regret.in_table)}"
    )


def _told(best: Best) -> str:
    return f"{number(best.value)} at {best.level} ({deployment_text(best.deployment)})"
