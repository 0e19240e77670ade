"""Show what a study has done so far, also while it runs elsewhere.

usage: python -m sweeper status study=NAME

Under "learnt" stand the regions in which nothing is launched any more because of a trial that
failed, and how many proposals each refused; `python -m sweeper bounds study=NAME drop=ID` takes
one back.
"""

from __future__ import annotations

from sweeper.config.trust import WARNING, runs_model_code
from sweeper.report.prior_text import render_prior
from sweeper.report.text import render_status
from sweeper.search.bounds.learn import learn
from sweeper.search.bounds.store import read_dropped
from sweeper.search.progress import take_stock
from sweeper.verbs.studies import open_study


def run(arguments: list[str]) -> int:
    """Print the trials of a study, what they taught, and what is left of its budget."""
    study = open_study(arguments)
    lessons = learn(study.outcomes, read_dropped(study.paths.dropped_bounds_json))
    progress = take_stock(study.cfg, study.outcomes)
    print(render_status(study.outcomes, study.paths.name, progress, lessons))
    if told := render_prior(study.outcomes, study.cfg):
        print(f"\n{told}")
    if runs_model_code(study.cfg):
        print(WARNING)
    return 0
