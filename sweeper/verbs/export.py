"""Write deployment files for the recommendation, or for one trial.

usage: python -m sweeper export study=NAME [target=all|vllm] [trial=N]
                                [select.slo.e2e_p95_ms=2000]
                                [export.host=0.0.0.0] [export.port=8000]

The files go to studies/NAME/recommended: vLLM's --config YAML, a start script, and where the
numbers come from. With trial=N the trial's own best point is exported, whatever is recommended.
"""

from __future__ import annotations

from sweeper.errors import ConfigError
from sweeper.export.registry import is_deployable
from sweeper.export.registry import resolve as known_targets
from sweeper.export.write import write_recommended
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.confirm_text import with_command
from sweeper.search.rebuild import rebuild_setup
from sweeper.verbs.studies import OpenedStudy, open_study, take


def run(arguments: list[str]) -> int:
    """Export; exit code 1 if no trial is named and no point keeps the promise of `select.slo`."""
    target, rest = take(arguments, "target", "all")
    number, rest = take(rest, "trial")
    targets = known_targets([str(target)])
    study = open_study(rest)
    engine = study.cfg.engine.name
    if not is_deployable(engine):
        raise ConfigError(
            f"there is no export target for engine={engine}",
            "what was measured on one engine does not hold for another: run the study on the "
            "engine that is to be deployed, for example engine=vllm",
        )
    frame = points_frame(study.outcomes)
    recommendation = recommend(frame, study.cfg.select, only_trial=_trial(study, number))
    recommendation = with_command(
        recommendation, frame, study.outcomes, study.cfg, study.paths.name
    )
    print(recommendation.headline)
    if not recommendation.keeps_slo and number is None:
        return 1
    setup = rebuild_setup(study.cfg, study.outcomes)
    write_recommended(setup, study.paths, study.outcomes, recommendation, targets)
    print(f"written to {study.paths.recommended_dir}")
    return 0


def _trial(study: OpenedStudy, number: str | None) -> int | None:
    if number is None:
        return None
    known = sorted({outcome.number for outcome in study.outcomes})
    if not number.isdigit() or int(number) not in known:
        raise ConfigError(
            f"trial={number} is not a trial of study {study.paths.name}",
            f"trials are {known[0]} to {known[-1]}" if known else "the study has no trial yet",
        )
    # A launch that repeats a trial has no deployment of its own.
    named = next(outcome for outcome in study.outcomes if outcome.number == int(number))
    return named.number if named.repeats is None else named.repeats
