"""Continue a study with the configuration it was started with.

usage: python -m sweeper resume study=NAME [budget.launches=40] [key=value ...]

Settings that are part of the study's identity (model, space, objective, workload, load, quality)
cannot change; the command says which one would.
"""

from __future__ import annotations

from sweeper.verbs.running import run_study
from sweeper.verbs.studies import open_study


def run(arguments: list[str]) -> int:
    """Reopen the study and run it to the end of its budget."""
    study = open_study(arguments)
    study.cfg.study = study.paths.name
    return run_study(study.cfg)
