"""From a candidate to the plan of its launch."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sweeper.quality.key import drafting
from sweeper.quality.reference import Reference
from sweeper.search.candidates import Candidate
from sweeper.search.known_quality import KnownQuality, known_quality
from sweeper.search.priors.guide import Guide
from sweeper.search.setup import StudySetup
from sweeper.search.standing import Standing
from sweeper.space.canonical import baseline, canonical
from sweeper.tracking.paths import StudyPaths
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.plan import TrialPlan


class Planner:
    """Plans the launches of one run of the tuner.

    Args:
        setup: the study's surroundings.
        paths: the study's folder.
        standing: where the launches so far have got to.
    """

    def __init__(self, setup: StudySetup, paths: StudyPaths, standing: Standing) -> None:
        self._scored: list[TrialOutcome] = []
        self._taken = 0
        self._setup = setup
        self._paths = paths
        self._standing = standing
        self._token = f"sweeper-{secrets.token_hex(8)}"

    def plan(
        self,
        number: int,
        candidate: Candidate,
        attempt: int,
        *,
        outcomes: Sequence[TrialOutcome],
        reference: Reference | None,
        guide: Guide | None,
    ) -> TrialPlan:
        """The launch of a candidate; its folder is made.

        Args:
            number: of the trial.
            candidate: what is launched.
            attempt: which launch of the trial it is.
            outcomes: the journal so far.
            reference: of the quality, once there is one.
            guide: prior knowledge, for the trial's manifest.
        """
        setup, cfg, turn = self._setup, self._setup.cfg, candidate.turn
        resolved = setup.resolve(candidate.deployment)
        key = setup.quality_key(candidate.deployment)
        defaults = canonical(setup.space, baseline(setup.space))
        drafts, plain = drafting(resolved.parameters), drafting(setup.resolve(defaults).parameters)
        known = self._known_quality(outcomes, reference, (key, drafts, plain))
        run_dir = self._paths.trial_dir(number, attempt)
        run_dir.mkdir(parents=True, exist_ok=True)
        return TrialPlan(
            number=number,
            kind=candidate.kind,
            attempt=attempt,
            deployment=candidate.deployment,
            deployment_hash=candidate.deployment_hash,
            checkpoint=resolved.checkpoint,
            engine_parameters=resolved.parameters,
            run_dir=run_dir,
            record_path=self._paths.launch_record,
            token=self._token,
            start_timeout_s=setup.start_timeout_s,
            hang_timeout_s=cfg.engine.hang_timeout_s,
            device_wait_s=cfg.engine.device_wait_s,
            workload=cfg.workload,
            load=cfg.load if turn is None else turn.load,
            quality=cfg.quality,
            device_count=setup.device_count(candidate.deployment),
            seed=cfg.workload.seed,
            quality_key=key,
            known_quality=known.score,
            drafting=drafts,
            to_write=known.to_write,
            plain_written=known.plain_written,
            reference=reference,
            may_write_reference=key == setup.quality_key(defaults) and drafts == plain,
            conditions=self._conditions(candidate, guide),
            repeats=None if turn is None else turn.trial,
            revision=setup.model.revision if resolved.is_model_itself(setup.model) else None,
            trust_remote_code=cfg.model.trust_remote_code,
            dtype=cfg.model.dtype,
            model=setup.model.facts,
            hardware=setup.hardware,
            record_text=cfg.record.text,
            to_make=resolved.to_make,
            weights=resolved.weights,
            to_beat=self._standing.to_beat(candidate.kind, candidate.deployment, known.score),
        )

    def _conditions(self, candidate: Candidate, guide: Guide | None) -> dict[str, Any]:
        """The study's, and what is particular to a launch: what it repeats, what was predicted."""
        found = self._setup.conditions()
        if candidate.turn is not None:
            return found | candidate.turn.conditions()
        if guide is None:
            return found
        return found | guide.conditions(candidate.deployment)

    def _known_quality(
        self,
        outcomes: Sequence[TrialOutcome],
        reference: Reference | None,
        of: tuple[str, str, str],
    ) -> KnownQuality:
        self._scored += [one for one in outcomes[self._taken :] if one.quality is not None]
        self._taken = len(outcomes)
        known = known_quality(self._scored, *of)
        writes = reference is not None and self._setup.cfg.quality.written_tokens > 0
        return known if writes else replace(known, to_write=False)
