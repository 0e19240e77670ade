"""From a configuration to a finished study: what `sweep` and `resume` share."""

from __future__ import annotations

import errno
import shlex
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sweeper.config.identity import differences, identity_hash, study_identity
from sweeper.config.names import study_name
from sweeper.config.schema import SweeperConfig
from sweeper.config.stored import read_study, study_text
from sweeper.engine import orphans
from sweeper.engine.flag_check import FlagCheck
from sweeper.engine.protocol import SERVED_MODEL, EngineFacts, Tabled
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
from sweeper.tracking import ending
from sweeper.tracking.bulletin import Bulletin
from sweeper.tracking.ending import Ending
from sweeper.tracking.journal import Journal
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.mlflow_log import MlflowTracker, StudySummary
from sweeper.tracking.paths import StudyPaths, atomic_write_text
from sweeper.tracking.rescue import Rescue
from sweeper.trial import judging
from sweeper.trial.progress import Event, Listener, Note
from sweeper.verbs.early import Early, check_early
from sweeper.verbs.finish import finish
from sweeper.verbs.flags_checked import check_flags, renames
from sweeper.verbs.interrupts import Interrupts, Voice, say
from sweeper.verbs.limits import raise_file_limit
from sweeper.verbs.modelled import modelled
from sweeper.verbs.table_told import introduced


def run_study(cfg: SweeperConfig, early: Early | None = None) -> int:
    """Run or continue the study a configuration describes.

    Args:
        cfg: the configuration.
        early: what was looked at already; None looks.

    Returns:
        0 with a recommendation, 1 if nothing feasible was found.

    Raises:
        UserError: bad input, found before anything is started.
        StudyError: the study cannot go on; everything measured is kept and reported.
        KeyboardInterrupt: interrupted; likewise.
    """
    paths = StudyPaths(Path(cfg.studies_dir).absolute(), study_name(cfg))
    raise_file_limit()
    try:
        with Interrupts() as interrupts, LiveView(paths.name) as view:
            voice = Voice(view, interrupts)
            setup = prepare(cfg, voice, early)
            paths.create()
            with StudyLock(paths.lock):
                return _run_locked(setup, paths, voice, interrupts)
    except KeyboardInterrupt:
        if paths.study_yaml.exists():
            say(f"everything measured is kept; to go on: {_resume_command(cfg, paths)}")
        raise


def _resume_command(cfg: SweeperConfig, paths: StudyPaths) -> str:
    folder = "" if cfg.studies_dir == "studies" else f" studies_dir={shlex.quote(cfg.studies_dir)}"
    return f"python -m sweeper resume study={paths.name}{folder}"


def prepare(cfg: SweeperConfig, listener: Listener, early: Early | None = None) -> StudySetup:
    """Resolve everything a study runs with; nothing is launched.

    The order is by cost: what can be refused at once is refused before a model is fetched.
    """
    early = early or check_early(cfg)
    engine_facts = early.engine.facts()
    if isinstance(early.engine, Tabled):
        for line in introduced(early.engine.table):
            listener(Note(line))
    checked = _flags(cfg, early, listener)
    model = _model(cfg, early, engine_facts, listener)
    draft = facts_from_config(cfg.model.draft_facts) if cfg.model.draft_facts else None
    machine = _machine(cfg, early, listener)
    setup = StudySetup(
        cfg,
        early.space,
        model,
        draft,
        machine,
        early.engine,
        engine_facts,
        refused=checked.refusals,
        renamed=_renamed(checked, model, listener),
    )
    setup = replace(setup, space=setup.selection.with_own_values(setup.space))
    return replace(setup, space=modelled(setup, listener))


def _flags(cfg: SweeperConfig, early: Early, listener: Listener) -> FlagCheck:
    """Flags and values that the installed engine does not take; see `flags_checked`."""
    checked = check_flags(cfg, early.space, early.engine, lambda text: listener(Note(text)))
    for note in checked.notes:
        listener(Note(note))
    return checked


def _renamed(
    checked: FlagCheck, model: ResolvedModel, listener: Listener
) -> dict[str, dict[str, str]]:
    renamed = renames(checked.renames, model.facts)
    for flag, words in renamed.items():
        for asked, given in words.items():
            listener(Note(f"{flag}={asked} is called {given} by this version of the engine"))
    return renamed


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


def _run_locked(
    setup: StudySetup, paths: StudyPaths, voice: Listener, interrupts: Interrupts
) -> int:
    paths.clear_torn()
    if not paths.reference_json.exists():
        quality, model = setup.cfg.quality, setup.model.path
        judging.prepare(quality, model, paths.root, lambda text: voice(Note(text)))
    identity = _prove_identity(setup, paths)
    for pid in orphans.reap(paths.launch_record):
        voice(Note(f"ended process {pid}, left over from an earlier run of this study"))
    rescue = Rescue(paths.root, identity_hash(identity))
    journal = Journal(paths.trials_jsonl, reserve=paths.reserve, rescue=rescue)
    for outcome in journal.take_up():
        voice(Note(f"trial {outcome.number}, which the disk had refused, is in the journal now"))
    tracker = MlflowTracker(
        setup.cfg,
        paths,
        identity,
        paths.name,
        warn=lambda text: voice(Note(text)),
    )

    bulletin = Bulletin(paths.now_json)

    def listener(event: Event) -> None:
        bulletin.observe(event)
        tracker.observe(event)
        interrupts.observe(event)
        voice(event)
        interrupts.catch_up()

    ending.clear(paths.ended_json)
    bulletin.clear()
    study = StudyRun(setup, paths, journal, tracker, listener)
    try:
        ended = study.run()
    except BaseException as problem:
        _wind_up(study, setup, paths, tracker=tracker, problem=problem, listener=voice)
        if isinstance(problem, OSError):
            raise _disk_trouble(problem, paths) from problem
        raise
    finally:
        bulletin.clear()
    ending.note(paths.ended_json, Ending(ending.FINISHED, ended))
    try:
        return finish(setup, paths, study.outcomes, tracker=tracker, ended=ended, listener=voice)
    finally:
        # Also where the report could not be written: the search is over.
        tracker.finish(StudySummary(tags={"ended": ended}))


def _wind_up(
    study: StudyRun,
    setup: StudySetup,
    paths: StudyPaths,
    *,
    tracker: MlflowTracker,
    problem: BaseException,
    listener: Listener,
) -> None:
    """Leave behind what there is after an end that nobody planned."""
    why = problem.message.splitlines()[0] if isinstance(problem, SweeperError) else ""
    ended = f"stopped: {why or type(problem).__name__}"
    ending.note(paths.ended_json, Ending(ending.status_of(ended), ended))
    try:
        if study.outcomes:
            # What ended the study is what its user must hear, not that nothing can be recommended,
            # nor that the full disk has no room for a report either.
            with suppress(SweeperError, OSError):
                finish(
                    setup, paths, study.outcomes, tracker=tracker, ended=ended, listener=listener
                )
    finally:
        tracker.finish(StudySummary(tags={"ended": ended}, interrupted=True))


def _disk_trouble(problem: OSError, paths: StudyPaths) -> StudyError:
    """What the disk refused besides the journal, which has its own words for it."""
    if problem.errno in {errno.EMFILE, errno.ENFILE}:
        return StudyError(
            "too many open files",
            "raise the limit (ulimit -n 65536) or lower load.concurrency, then run the same "
            "command again: it goes on from there",
        )
    where = problem.filename or paths.root
    return StudyError(
        f"{where}: {problem.strerror or problem}; everything measured is kept",
        "free space on the disk or make the folder writable, then run the same command again: it "
        "goes on from there",
    )


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
        recipes=setup.selection.identity(),
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
