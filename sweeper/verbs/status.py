"""Show what a study has done so far, also while it runs elsewhere.

usage: python -m sweeper status study=NAME
"""

from __future__ import annotations

from sweeper.report.text import render_status
from sweeper.verbs.studies import open_study


def run(arguments: list[str]) -> int:
    """Print the trials of a study, their verdicts and what is left of its budget."""
    study = open_study(arguments)
    print(render_status(study.outcomes, study.paths.name, study.cfg.budget.launches))
    return 0
