"""Finished studies as a prior: what deployments did there, by the parameters both spaces share.

A study counts if it is of the same model family or of the same GPU. Its curves are taken as they
are; the baseline's calibration then turns them into ratios: a flag that gave 20 % there is expected
to give 20 % here. Deployments that nobody launched there are inferred from near ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeper.errors import ConfigError, JournalError
from sweeper.pareto.points import latest_attempts
from sweeper.search.priors.neighbours import Neighbours
from sweeper.search.priors.prior import Deployment, PredictedPoint, Prediction, Prior, Say
from sweeper.search.priors.trust import TRUST
from sweeper.space.canonical import baseline
from sweeper.space.model import ENGINE_DEFAULT
from sweeper.tracking.journal import Journal
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Verdict

if TYPE_CHECKING:
    from sweeper.search.setup import StudySetup

JOURNAL = "trials.jsonl"


def make(setup: StudySetup, _: Say) -> Prior | str:
    """The studies that `prior.studies` names.

    Raises:
        ConfigError: one cannot be read, or is of another model family and another GPU.
    """
    told = [(path, read(path)) for path in setup.cfg.prior.studies]
    if not told:
        return "prior.studies names none"
    for path, outcomes in told:
        _check_kin(path, outcomes, setup)
    return StudiesPrior(setup, told)


def read(path: str) -> list[TrialOutcome]:
    """Measured trials of a study, from its folder or its journal.

    Raises:
        ConfigError: there is no journal, it cannot be read, or nothing in it was measured.
    """
    place = Path(path).expanduser()
    journal = place / JOURNAL if place.is_dir() else place
    if not journal.is_file():
        raise ConfigError(
            f"prior.studies: there is no {journal}",
            "name the folder of a study (studies/NAME) or its trials.jsonl; to resume without it: "
            "prior.kinds=[] prior.studies=[]",
        )
    try:
        outcomes = Journal(journal).read()
    except JournalError as error:
        raise ConfigError(f"prior.studies: {error.message}", error.remedy) from error
    measured = [
        outcome
        for outcome in latest_attempts(outcomes)
        if outcome.verdict is Verdict.OK and outcome.valid_points and outcome.partial is None
    ]
    if not measured:
        raise ConfigError(
            f"prior.studies: {journal} has no measured trial", "take that study out of the list"
        )
    return measured


def family(name: str) -> str:
    """A model's family by its name: ``Qwen/Qwen2.5-7B-Instruct`` and ``qwen7b`` are ``qwen``."""
    found = re.match(r"[a-z]+", name.rstrip("/").rpartition("/")[2].lower())
    return found.group() if found else ""


def _check_kin(path: str, outcomes: Sequence[TrialOutcome], setup: StudySetup) -> None:
    manifest = outcomes[0].manifest
    theirs = _text(manifest, "model", "name"), _text(manifest, "model", "path")
    ours = setup.model.name, setup.model.path
    same_family = bool({family(name) for name in theirs} & {family(name) for name in ours} - {""})
    gpu = _text(manifest, "hardware", "name")
    if not same_family and gpu != setup.hardware.name:
        raise ConfigError(
            f"prior.studies: {path} is of another model ({theirs[0] or 'unknown'}) and of other "
            f"hardware ({gpu or 'unknown'}) than this study ({ours[0]}, {setup.hardware.name})",
            "name studies of the same model family or of the same GPU",
        )


def _text(manifest: Mapping[str, Any], section: str, field: str) -> str:
    inner = manifest.get(section)
    value = inner.get(field) if isinstance(inner, Mapping) else None
    return value if isinstance(value, str) else ""


class StudiesPrior:
    """Curves of other studies' deployments.

    Args:
        setup: of this study.
        told: path and measured trials of each.
    """

    kind = "studies"
    trust = TRUST[kind]

    def __init__(
        self, setup: StudySetup, told: Sequence[tuple[str, Sequence[TrialOutcome]]]
    ) -> None:
        own = {**setup.space.fixed, **baseline(setup.space)}
        self.notes: list[str] = []
        self._sources = [self._source(path, outcomes, own) for path, outcomes in told]

    def suggestions(self) -> list[dict[str, Any]]:
        return []

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        """Of the first study that has something to say of a deployment."""
        told = [source.predict(deployments) for source in self._sources]
        return [
            next((answer for answer in answers if answer is not None), None)
            for answers in zip(*told, strict=True)
        ]

    def _source(
        self, path: str, outcomes: Sequence[TrialOutcome], own: Mapping[str, Any]
    ) -> Neighbours:
        theirs = {name for outcome in outcomes for name in outcome.deployment}
        shared = sorted(theirs & set(own))
        for strangers, where in (
            (theirs - set(own), "not in this space"),
            (set(own) - theirs, "always at the default there"),
        ):
            if strangers:
                self.notes.append(f"{path}: {', '.join(sorted(strangers))}: {where}, left out")
        defaults = {name: _default(own[name]) for name in shared}
        return Neighbours(
            [(outcome.deployment, as_prediction(outcome)) for outcome in outcomes],
            shared,
            defaults,
        )


def _default(value: Any) -> Any:
    """How both studies' deployments say "left to the engine", by leaving the parameter out."""
    return None if value == ENGINE_DEFAULT else value


def as_prediction(outcome: TrialOutcome) -> Prediction:
    """What a trial measured elsewhere, as a prediction of what it would measure here."""
    return Prediction(
        tuple(PredictedPoint(point.load, point.metrics) for point in outcome.valid_points)
    )
