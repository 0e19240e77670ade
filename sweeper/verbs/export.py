"""Write deployment files for the recommendation, or for one trial.

usage: python -m sweeper export study=NAME [target=all|vllm] [trial=N] [select.slo.e2e_p95_ms=2000]
                                [export.host=0.0.0.0] [export.port=8000]

The files go to studies/NAME/recommended: vLLM's --config YAML, a start script, and where the numbers
come from. With trial=N the trial's own best point is exported, whatever the recommendation is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeper.errors import ConfigError
from sweeper.export.registry import resolve as known_targets
from sweeper.export.write import write_recommended
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.search.rebuild import rebuild_setup
from sweeper.verbs.studies import OpenedStudy, open_study, take

if TYPE_CHECKING:
    import pandas as pd


def run(arguments: list[str]) -> int:
    """Export; exit code 1 if the promise of `select.slo` is kept by no point."""
    target, rest = take(arguments, "target", "all")
    number, rest = take(rest, "trial")
    targets = known_targets([str(target)])
    study = open_study(rest)
    frame = _of_trial(points_frame(study.outcomes), study, number)
    recommendation = recommend(frame, study.cfg.select)
    if not recommendation.keeps_slo:
        print(recommendation.headline)
        return 1
    setup = rebuild_setup(study.cfg, study.outcomes)
    write_recommended(setup, study.paths, study.outcomes, recommendation, targets)
    print(f"{recommendation.headline}\nwritten to {study.paths.recommended_dir}")
    return 0


def _of_trial(frame: pd.DataFrame, study: OpenedStudy, number: str | None) -> pd.DataFrame:
    """Points of one trial, and of the baseline to compare with; all without a number."""
    if number is None:
        return frame
    known = sorted({outcome.number for outcome in study.outcomes})
    if not number.isdigit() or int(number) not in known:
        raise ConfigError(
            f"trial={number} is not a trial of study {study.paths.name}",
            f"trials are {known[0]} to {known[-1]}" if known else "the study has no trial yet",
        )
    return frame[frame["trial"] == int(number)].reset_index(drop=True)
