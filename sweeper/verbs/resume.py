"""Continue a study with the configuration it was started with.

usage: python -m sweeper resume study=NAME [budget.launches=40] [key=value ...]

Settings that are part of the study's identity (model, space, objective, workload, load, quality)
cannot change; the command says which one would. What may change: the budget, the SLO and the
preference of the selection, time-outs, tracking. A trial that a killed run was at is run again.

examples:
  python -m sweeper resume study=NAME
  python -m sweeper resume study=NAME budget.launches=40
  python -m sweeper resume study=NAME tracking.uri=http://127.0.0.1:5000

exit codes: 0 done, 1 no feasible trial or failed, 2 bad input, 130 interrupted (resume goes on)
"""

from __future__ import annotations

from sweeper.verbs.running import run_study
from sweeper.verbs.studies import open_study


def run(arguments: list[str]) -> int:
    """Reopen the study and run it to the end of its budget."""
    study = open_study(arguments)
    study.cfg.study = study.paths.name
    return run_study(study.cfg)
