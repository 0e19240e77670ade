"""Start an exported file, drive it at its operating point, and hold it to what was promised.

    the file ──► launch ──► effective arguments ──► its load level, fresh prompts ──► stop
                   └── again, as often as was asked ──┘                                │
                                       promised figures, limits, noise ──► judge ◄─────┘

A launch is a trial like any other (`sweeper.trial.run`): the same locks, deadlines, gates and
clean-up. It is no part of the study and stands in no journal.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sweeper.engine.protocol import Engine
from sweeper.engine.served import LOG_NAME
from sweeper.errors import StudyError
from sweeper.export.bundle import ExportInput
from sweeper.export.verify.conditions import arguments, busy, changed_conditions, changed_effects
from sweeper.export.verify.files import Exported, differences
from sweeper.export.verify.judge import Status, judge, overall
from sweeper.export.verify.outcome import Verification
from sweeper.export.verify.registry import starter
from sweeper.export.verify.words import of_failure, of_judgement
from sweeper.launcher.local import LocalLauncher
from sweeper.models.cache import cache_dir
from sweeper.pareto.points import latest_attempts
from sweeper.pareto.recommendation import Recommendation
from sweeper.pareto.repeats import Repeat, noise_of, pooled
from sweeper.search.confirmation.turns import narrow
from sweeper.search.reference_file import stored_reference
from sweeper.search.setup import StudySetup
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Listener
from sweeper.verdicts import Verdict

KIND = "verify"
_PATIENCE = 4.0
"""How many times as long as the measured start this one may take, at least."""
_FIRST_ATTEMPT = 1000
"""Of a verification: prompts are drawn by trial and attempt, and no trial has so many."""


@dataclass(frozen=True)
class Case:
    """What is verified, and against what.

    Attributes:
        setup: what the study ran with.
        paths: its folder; its lock is held.
        outcomes: of the study.
        source: what the exported point was measured to do.
        exported: the file that is started.
    """

    setup: StudySetup
    paths: StudyPaths
    outcomes: Sequence[TrialOutcome]
    source: ExportInput
    exported: Exported

    @property
    def chosen(self) -> Recommendation:
        """The operating point that was exported."""
        return self.source.recommendation

    @property
    def trial(self) -> TrialOutcome:
        """The last attempt of the trial that measured it."""
        return next(o for o in reversed(self.outcomes) if o.number == self.chosen.trial)


def verify(case: Case, listener: Listener, launches: int = 1) -> Verification:
    """Launch what stands in the exported file and say whether it keeps what was promised.

    Args:
        case: what is verified.
        listener: told of phases as they pass.
        launches: how often it is launched.

    Raises:
        ConfigError: the engine's exports cannot be started.
        StudyError: the model that the file names is not here, the file holds the server's key, or
            a launch left the machine unfit for another.
        KeyboardInterrupt: after the server has been stopped.
    """
    setup, exported = case.setup, case.exported
    _check(exported)
    make = starter(setup.cfg.engine.name)
    engine = make(setup.cfg.engine, cache_dir=cache_dir(setup.cfg), exported=exported)
    others = busy(os.getloadavg()[0], os.cpu_count() or 1)
    done, folder = _launched(case, engine, listener, launches)
    last, measured = done[-1].manifest, case.trial.manifest
    base = Verification(
        status=Status.CANNOT_TELL,
        reasons=(),
        study=case.paths.name,
        trial=case.chosen.trial,
        level=case.chosen.level,
        config_sha256=exported.sha256,
        edits=differences(exported, case.source),
        changed={
            **changed_conditions(measured, engine, setup.cfg.hardware),
            **changed_effects(measured, last, exported),
        },
        busy=others,
        arguments=arguments(exported, last.get("effective_args")),
        promised_launches=int(case.chosen.point.get("launches", 1)),
        log=str(folder / LOG_NAME),
        verified_at=datetime.now(UTC).isoformat(timespec="seconds"),
    ).without_secrets()
    if _point(done[-1], case.chosen.level) is None:
        return of_failure(base, done[-1])
    return _judged(base, case, done)


def _launched(
    case: Case, engine: Engine, listener: Listener, launches: int
) -> tuple[list[TrialOutcome], Path]:
    """(launches until one failed, folder of the last)."""
    done: list[TrialOutcome] = []
    for _ in range(launches):
        plan = _plan(case)
        result = LocalLauncher(engine).run(plan, listener)
        if result.halt is not None:
            raise StudyError(result.halt.cause, result.halt.remedy)
        done.append(result.outcome)
        if result.outcome.verdict is not Verdict.OK:
            break
    return done, plan.run_dir


def _judged(base: Verification, case: Case, done: Sequence[TrialOutcome]) -> Verification:
    chosen = case.chosen
    points = [point for one in done if (point := _point(one, chosen.level)) is not None]
    own = [point.metrics for point in points]
    noise = noise_of(latest_attempts(case.outcomes), own)
    if len(points) == 1:
        row = _row(points[0])
    else:
        row = pooled([Repeat(n, n, point) for n, point in enumerate(points, 1)], noise)
    quality = done[-1].quality
    if quality is not None:
        row |= {"quality": quality.score, "quality_se": quality.score_se}
    promised = chosen.slo if chosen.keeps_slo else {}
    figures, limits = judge(chosen.point, row, promised, noise)
    status = overall([*(one.status for one in figures), *(one.status for one in limits)])
    found = replace(
        base,
        status=status,
        figures=figures,
        limits=limits,
        launches=len(points),
        requests=sum(point.n for point in points),
    )
    return of_judgement(found, chosen, points)


def _point(outcome: TrialOutcome, level: str) -> Point | None:
    """The figures of a launch that went well."""
    if outcome.verdict is not Verdict.OK:
        return None
    return next((point for point in outcome.valid_points if point.level == level), None)


def _row(point: Point) -> dict[str, Any]:
    ends = {
        f"{name}.{end}": value
        for name, pair in point.intervals.items()
        for end, value in zip(("low", "high"), pair, strict=True)
    }
    return {**point.metrics, **ends, "n": point.n, "launches": 1}


def _plan(case: Case) -> TrialPlan:
    """One launch; its folder is made."""
    setup, cfg, paths = case.setup, case.setup.cfg, case.paths
    chosen, trial, exported = case.chosen, case.trial, case.exported
    number, run_dir = _next_folder(paths)
    with_quality = "min_quality" in chosen.slo and chosen.keeps_slo
    return TrialPlan(
        number=chosen.trial,
        kind=KIND,
        attempt=_FIRST_ATTEMPT + number,
        deployment=dict(exported.flags),
        deployment_hash=trial.deployment_hash,
        checkpoint=exported.model,
        engine_parameters=dict(exported.flags),
        run_dir=run_dir,
        record_path=paths.launch_record,
        token=f"sweeper-verify-{secrets.token_hex(8)}",
        start_timeout_s=_start_timeout_s(setup, trial),
        hang_timeout_s=cfg.engine.hang_timeout_s,
        device_wait_s=cfg.engine.device_wait_s,
        workload=cfg.workload,
        load=narrow(cfg.load, case.outcomes, frozenset({chosen.level})),
        quality=cfg.quality if with_quality else replace(cfg.quality, kind="none"),
        device_count=setup.device_count(exported.flags),
        seed=cfg.workload.seed,
        quality_key=setup.quality_key(trial.deployment),
        reference=stored_reference(paths, case.outcomes) if with_quality else None,
        conditions=setup.conditions(),
        record_text=cfg.record.text,
    )


def _start_timeout_s(setup: StudySetup, trial: TrialOutcome) -> float:
    """The study's own deadline, or several times what the same start took."""
    if setup.cfg.engine.start_timeout_s is not None:
        return setup.cfg.engine.start_timeout_s
    return max(setup.start_timeout_s, _PATIENCE * float(trial.timings_s.get("ready", 0.0)))


def _next_folder(paths: StudyPaths) -> tuple[int, Path]:
    known = [int(one.name) for one in paths.verify_dir.glob("*") if one.name.isdigit()]
    number = max(known, default=0) + 1
    folder = paths.verify_dir / str(number)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise StudyError(
            f"cannot make {folder} ({error.strerror or error})",
            "make the study's folder writable or free space on its disk",
        ) from error
    return number, folder


def _check(exported: Exported) -> None:
    """Raises StudyError for a file that cannot be started here, before anything is."""
    if "api_key" in exported.flags:
        raise StudyError(
            f"{exported.path} holds an api-key, which every reader of the file then knows",
            "take it out of the file and give it by the environment: VLLM_API_KEY",
        )
    if exported.model.startswith("/") and not Path(exported.model).is_dir():
        raise StudyError(
            f"{exported.path} names the model {exported.model}, which is not on this machine",
            "verify on the machine that is to serve, or put the model there; what was quantized "
            "here, `python -m sweeper resume study=NAME` makes again",
        )
