"""The part of `export` that starts what it wrote, with everything that a launch needs around it."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.engine import orphans
from sweeper.errors import StudyError
from sweeper.export.verify.files import FACTS_NAME, origin_of, read_exported
from sweeper.export.verify.run import Case, verify
from sweeper.export.verify.text import render, write_verification
from sweeper.export.vllm_config import YAML_NAME
from sweeper.export.write import export_input, write_recommended
from sweeper.pareto.recommendation import Recommendation
from sweeper.report.live import LiveView
from sweeper.search.rebuild import rebuild_setup
from sweeper.tracking.lock import StudyLock
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.progress import Event, LevelDone, Listener, Note, PhaseChanged
from sweeper.verbs.interrupts import Interrupts, Voice
from sweeper.verbs.limits import raise_file_limit
from sweeper.verbs.studies import OpenedStudy

TARGET = "vllm"


def export_verified(
    study: OpenedStudy,
    recommendation: Recommendation,
    targets: Sequence[str],
    launches: int,
    *,
    asked_for: bool,
) -> int:
    """Export, start the exported file and hold it to its promise. Exit code 0 if it keeps it.

    A file that was edited by hand since it was exported is left as it stands.

    Raises:
        ConfigError: the study's settings or the file cannot be used.
        StudyError: a study or another verification runs, an edited file is of another point, or a
            launch left the machine unfit for another.
        KeyboardInterrupt: interrupted; nothing runs any more.
    """
    setup, paths = rebuild_setup(study.cfg, study.outcomes), study.paths
    wanted = list(dict.fromkeys([*targets, TARGET]))
    raise_file_limit()
    with Interrupts() as interrupts, StudyLock(paths.lock):
        for pid in orphans.reap(paths.launch_record):
            print(f"ended process {pid}, left over from an earlier run of this study")
        if _is_edited(paths, recommendation):
            print(f"{paths.recommended_dir / YAML_NAME} was edited: verified as it stands")
        else:
            outcomes = study.outcomes
            write_recommended(setup, paths, outcomes, recommendation, wanted, asked_for=asked_for)
            print(f"written to {paths.recommended_dir}")
        source = export_input(
            setup, paths.name, study.outcomes, recommendation, asked_for=asked_for
        )
        case = Case(setup, paths, study.outcomes, source, read_exported(paths.recommended_dir))
        with LiveView(paths.name) as view:
            found = verify(case, _verifying(Voice(view, interrupts)), launches)
        write_verification(paths.recommended_dir, found)
    print(f"\n{render(found)}")
    return 0 if found.is_kept else 1


def _is_edited(paths: StudyPaths, recommendation: Recommendation) -> bool:
    """Whether the file of this very point was edited. Raises StudyError if that of another was."""
    there = origin_of(paths.recommended_dir)
    if there is None or not there.edits:
        return False
    if (there.trial, there.level) == (recommendation.trial, recommendation.level):
        return True
    raise StudyError(
        f"{paths.recommended_dir / YAML_NAME} was edited by hand ({', '.join(there.edits)}), and "
        f"was exported for trial {there.trial} at {there.level}; this would write trial "
        f"{recommendation.trial} at {recommendation.level} over it",
        f"verify it with the settings that it was exported with (see {FACTS_NAME} there), or move "
        "the folder away first",
    )


def _verifying(listener: Listener) -> Listener:
    """What passes, told as of a verification: it is no trial of the study."""

    def told(event: Event) -> None:
        if isinstance(event, PhaseChanged):
            detail = f" {event.detail}" if event.detail else ""
            listener(Note(f"verifying: {event.phase}{detail}"))
        elif not isinstance(event, LevelDone):
            listener(event)

    return told
