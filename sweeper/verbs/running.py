"""From a configuration to a finished study: what `sweep` and `resume` share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Any

from sweeper.config.identity import differences, study_identity
from sweeper.config.names import study_name
from sweeper.config.schema import SweeperConfig
from sweeper.config.stored import read_study, study_text
from sweeper.engine import orphans
from sweeper.engine.protocol import SERVED_MODEL, EngineFacts
from sweeper.errors import IdentityError, StudyError, SweeperError
from sweeper.hardware.facts import HardwareFacts
from sweeper.hardware.peaks import with_measured_peaks
from sweeper.load.workload.registry import content_sha256
from sweeper.models import fitness
from sweeper.models.cache import cache_dir
from sweeper.models.elsewhere import served_elsewhere
from sweeper.models.read import facts_from_config
from sweeper.models.resolve import ResolvedModel, described, resolve
from sweeper.report.live import LiveView
from sweeper.search.loop import StudyRun
from sweeper.search.setup import StudySetup
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker
from sweeper.tracking.paths import StudyPaths, atomic_write_text
from sweeper.trial.progress import Listener, Note
from sweeper.verbs.early import Early, check_early
from sweeper.verbs.finish import finish


def run_study(cfg: SweeperConfig) -> int:
    """Run or continue the study a configuration describes.

    Returns:
        0 with a recommendation, 1 if nothing feasible was found.

    Raises:
        UserError: bad input, found before anything is started.
        StudyError: the study cannot go on; everything measured is kept and reported.
        KeyboardInterrupt: interrupted; likewise.
    """
    paths = StudyPaths(Path(cfg.studies_dir).absolute(), study_name(cfg))
    with _terminating_as_interrupt(), LiveView(paths.name) as listener:
        setup = prepare(cfg, listener)
        paths.create()
        with StudyLock(paths.lock):
            return _run_locked(setup, paths, listener)


def prepare(cfg: SweeperConfig, listener: Listener) -> StudySetup:
    """Resolve everything a study runs with; nothing is launched.

    The order is by cost: what can be refused at once is refused before a model is fetched.
    """
    early = check_early(cfg)
    engine_facts = early.engine.facts()
    model = _model(cfg, early, engine_facts, listener)
    draft = facts_from_config(cfg.model.draft_facts) if cfg.model.draft_facts else None
    machine = _machine(cfg, early, listener)
    return StudySetup(cfg, early.space, model, draft, machine, early.engine, engine_facts)


def _machine(cfg: SweeperConfig, early: Early, listener: Listener) -> HardwareFacts:
    """The machine with the peaks that were measured on it, where an engine is to run here."""
    if early.engine.predicted or not early.engine.needs_checkpoint:
        return early.machine
    listener(Note("peaks of this machine, for the speed of light"))
    return with_measured_peaks(
        early.machine, cfg.hardware, python=cfg.engine.python, cache_dir=cache_dir(cfg)
    )


def _model(
    cfg: SweeperConfig, early: Early, engine_facts: EngineFacts, listener: Listener
) -> ResolvedModel:
    """The model: behind a server that is there, as described, or made ready on this machine."""
    if not early.engine.needs_checkpoint:
        return served_elsewhere(cfg.model, engine_facts.details[SERVED_MODEL])
    if early.engine.predicted:
        return described(cfg.model)
    fitness.check_engine_device(engine_facts.device, early.machine.kind)
    return resolve(
        cfg.model,
        cache_dir(cfg),
        progress=lambda text: listener(Note(text)),
        python=cfg.engine.python,
    )


def _run_locked(setup: StudySetup, paths: StudyPaths, listener: Listener) -> int:
    identity = _prove_identity(setup, paths)
    for pid in orphans.reap(paths.launch_record):
        listener(Note(f"ended process {pid}, left over from an earlier run of this study"))
    journal = Journal(paths.trials_jsonl)
    tracker = MlflowTracker(
        setup.cfg,
        paths,
        identity,
        paths.name,
        warn=lambda text: listener(Note(text)),
    )
    study = StudyRun(setup, paths, journal, tracker, listener)
    ended = "stopped"
    try:
        ended = study.run()
    except BaseException as problem:
        if study.outcomes:
            ended = f"stopped: {type(problem).__name__}"
            # What ended the study is what its user must hear, not that nothing can be recommended.
            with suppress(SweeperError):
                finish(
                    setup, paths, study.outcomes, tracker=tracker, ended=ended, listener=listener
                )
        raise
    return finish(setup, paths, study.outcomes, tracker=tracker, ended=ended, listener=listener)


def _prove_identity(setup: StudySetup, paths: StudyPaths) -> dict[str, Any]:
    """Write `study.yaml` on the first run; on later ones refuse to go on as another study."""
    cfg = setup.cfg
    identity = study_identity(
        cfg,
        model={
            "name": setup.model.name,
            "path": setup.model.path,
            "revision": setup.model.revision,
            "digest": setup.model.digest,
        },
        engine=asdict(setup.engine_facts),
        hardware={
            "kind": setup.hardware.kind,
            "name": setup.hardware.name,
            "device_count": setup.hardware.device_count,
            "cpu_cores": setup.hardware.cpu_cores,
            "memory_gib": round(setup.hardware.memory_gib) or None,
            "driver": setup.hardware.driver,
        },
        workload_sha256=content_sha256(cfg.workload),
    )
    if not paths.study_yaml.exists() and paths.trials_jsonl.exists():
        raise StudyError(
            f"{paths.study_yaml} is gone, so nothing says what the trials beside it measured",
            "restore it from a backup, or start a new study with study=NEW_NAME",
        )
    if paths.study_yaml.exists():
        changed = differences(read_study(paths.study_yaml).identity, identity)
        if changed:
            raise IdentityError(
                f"study `{paths.name}` is another study; it differs in\n    "
                + "\n    ".join(changed),
                "take a new name with study=NEW_NAME, or go on with the old settings: "
                f"python -m sweeper resume study={paths.name}",
            )
    atomic_write_text(paths.study_yaml, study_text(replace(cfg, study=paths.name), identity))
    return identity


@contextmanager
def _terminating_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a study like Ctrl-C: server stopped, everything measured kept."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # What the caller had ignored stays ignored: `nohup` asks to outlive the terminal.
    watched = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    previous = [signal.signal(number, interrupt) for number in watched]
    try:
        yield
    finally:
        for number, handler in zip(watched, previous, strict=True):
            signal.signal(number, handler)
