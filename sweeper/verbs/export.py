"""Write deployment files for the recommendation, or for one trial; start them to verify them.

usage: python -m sweeper export study=NAME [target=all|vllm|...] [trial=N] [verify=true]
           [select.slo.e2e_p95_ms=2000] [select.prefer=cost] (see `pareto --help` for all of them)
           [export.host=0.0.0.0] [export.port=8000]

The files go to studies/NAME/recommended: for each target what it deploys with, and where the
numbers come from. With trial=N the trial's own best point is exported, whatever is recommended.

verify=true starts a server from the exported vllm.yaml on a free port of this machine, reads back
the arguments in effect, drives it at the exported operating point with fresh prompts, and says
whether it keeps what was promised: kept, not kept, or cannot tell. verify=3 starts it three times,
which also tells how much launches differ. A vllm.yaml that was edited by hand since it was exported
is not written anew: it is verified as it stands. More requests: load.requests_per_stream=50.
Result: recommended/verified.json, and a paragraph in the README there.

examples:
  python -m sweeper export study=qwen7b-gpu
  python -m sweeper export study=qwen7b-gpu select.slo.ttft_p95_ms=300 select.prefer=cost
  python -m sweeper export study=qwen7b-gpu trial=7 target=vllm verify=true

exit codes: 0 written, and with verify kept; 1 no trial is named and no point keeps all limits, or
what was verified is not kept; 2 bad input
"""

from __future__ import annotations

from sweeper.errors import ConfigError
from sweeper.export.registry import is_deployable
from sweeper.export.registry import resolve as known_targets
from sweeper.export.write import write_recommended
from sweeper.pareto.cost import Price
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.confirm_text import with_command
from sweeper.search.rebuild import rebuild_setup
from sweeper.verbs.studies import OpenedStudy, open_study, take

_NO = "false"


def run(arguments: list[str]) -> int:
    """Export; exit code 1 if no trial is named and no point keeps the promise of `select.slo`."""
    target, rest = take(arguments, "target", "all")
    number, rest = take(rest, "trial")
    asked, rest = take(rest, "verify", _NO)
    targets, launches = known_targets(str(target).split(",")), _launches(str(asked))
    study = open_study(rest)
    _check_engine(study.cfg.engine.name, verify=launches > 0)
    frame = points_frame(study.outcomes)
    recommendation = recommend(
        frame,
        study.cfg.select,
        only_trial=_trial(study, number),
        price=Price.of(study.cfg.hardware),
    )
    recommendation = with_command(
        recommendation, frame, study.outcomes, study.cfg, study.paths.name
    )
    print(recommendation.headline)
    if not recommendation.keeps_slo and number is None:
        return 1
    if launches:
        from sweeper.verbs.verified import export_verified

        return export_verified(study, recommendation, targets, launches, asked_for=bool(number))
    setup = rebuild_setup(study.cfg, study.outcomes)
    write_recommended(
        setup, study.paths, study.outcomes, recommendation, targets, asked_for=bool(number)
    )
    print(f"written to {study.paths.recommended_dir}")
    return 0


def _check_engine(engine: str, *, verify: bool) -> None:
    if not is_deployable(engine):
        raise ConfigError(
            f"there is no export target for engine={engine}",
            "what was measured on one engine does not hold for another: run the study on the "
            "engine that is to be deployed, for example engine=vllm",
        )
    if verify:
        from sweeper.export.verify.registry import check

        check(engine)


def _launches(asked: str) -> int:
    """How often the export is started; 0 for not at all."""
    words = {"true": 1, "yes": 1, _NO: 0, "no": 0}
    if (known := words.get(asked.lower())) is not None:
        return known
    if asked.isdecimal() and 0 < int(asked) <= _MOST_LAUNCHES:
        return int(asked)
    raise ConfigError(
        f"verify={asked} is not known",
        f"use verify=true, or the number of launches, up to {_MOST_LAUNCHES}: verify=3",
    )


_MOST_LAUNCHES = 20


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
