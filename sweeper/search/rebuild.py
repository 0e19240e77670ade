"""A study's surroundings as its journal recorded them, for verbs that only look."""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.config.schema import SweeperConfig
from sweeper.engine.protocol import EngineFacts
from sweeper.engine.registry import create
from sweeper.errors import StudyError
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.cache import cache_dir
from sweeper.models.resolve import ResolvedModel
from sweeper.search.setup import StudySetup
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import TrialOutcome


def rebuild_setup(cfg: SweeperConfig, outcomes: Sequence[TrialOutcome]) -> StudySetup:
    """Surroundings from the last manifest: works where neither engine nor model nor GPU is.

    Raises:
        StudyError: the study has no trial, or its manifest lacks the conditions.
    """
    if not outcomes:
        raise StudyError("the study has no trial yet", "run it: python -m sweeper study=NAME")
    manifest = outcomes[-1].manifest
    try:
        model, machine, engine = manifest["model"], manifest["hardware"], manifest["engine"]
        return StudySetup(
            cfg=cfg,
            space=parse_space(cfg.space),
            model=ResolvedModel(
                name=model["name"],
                path=model["path"],
                source=model["source"],
                revision=model["revision"],
                licence=model["licence"],
                digest=model["digest"],
            ),
            draft=None,
            hardware=HardwareFacts(
                kind=machine["kind"],
                name=machine["name"],
                device_count=machine["device_count"],
                memory_gib=machine.get("memory_gib", 0.0),
                detected=False,
            ),
            engine=create(cfg.engine, cache_dir=cache_dir(cfg)),
            engine_facts=EngineFacts(**engine),
            renamed=manifest.get("renamed", {}),
        )
    except (KeyError, TypeError) as error:
        raise StudyError(
            f"trial {outcomes[-1].number} has no complete manifest ({error})",
            "it was written by another version; export with that version",
        ) from error
