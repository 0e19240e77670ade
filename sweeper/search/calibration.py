"""What the launches of a study say of the model of memory, and what its user hears of it.

Only figures that an engine measured count: an engine that predicts has a model of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sweeper.estimate.facts import Context
from sweeper.estimate.memory_budget import sizes_a_cache
from sweeper.estimate.memory_calibrate import calibrate
from sweeper.estimate.memory_launch import Calibration, Launch
from sweeper.estimate.rules_memory import MEMORY_RULES
from sweeper.estimate.violation import Violation
from sweeper.search.setup import StudySetup
from sweeper.trial.outcome import TrialOutcome
from sweeper.trial.progress import Listener, Note
from sweeper.verdicts import Verdict

WORKED = frozenset({Verdict.OK, Verdict.QUALITY_FAIL})
SHORT = frozenset({"no_kv_memory", "kv_too_small_for_max_model_len"})
"""Rules of starts that failed for want of KV cache."""
IN_EFFECT = ("gpu_memory_utilization", "max_model_len", "max_num_batched_tokens", "max_num_seqs")


class LiveCalibration:
    """The calibration of a running study, made anew when there is a new outcome.

    Args:
        setup: the study.
        outcomes: the journal so far.
        listener: told of contradictions, each once.
    """

    def __init__(
        self,
        setup: StudySetup,
        outcomes: Callable[[], Sequence[TrialOutcome]],
        listener: Listener,
    ) -> None:
        self._setup = setup
        self._outcomes = outcomes
        self._listener = listener
        self._seen = 0
        self._lifted: dict[str, bool] = {}
        self._found = Calibration()
        self.look(quietly=True)

    def look(self, *, quietly: bool = False) -> Calibration:
        """What the launches so far say."""
        outcomes = self._outcomes()
        new, self._seen = outcomes[self._seen :], len(outcomes)
        if any(outcome.launched for outcome in new):  # refusals teach nothing, and are many
            before, self._found = self._found, calibration_of(outcomes, self._setup)
            self._lifted = {}
            for note in self._found.notes:
                if note not in before.notes and not quietly:
                    self._listener(Note(note))
        return self._found

    def is_lifted(
        self, outcome: TrialOutcome, violations: Callable[[Mapping[str, Any]], list[Violation]]
    ) -> bool:
        """True for a trial that arithmetic of memory refused and would no longer: it is open again.

        Only after a contradiction, which is the one thing that takes a proof back.
        """
        refused = not outcome.launched and outcome.learnt.get("rule") in MEMORY_RULES
        if not refused or not self.look().notes:
            return False
        known = self._lifted.get(outcome.deployment_hash)
        if known is None:
            known = not violations(outcome.deployment)
            self._lifted[outcome.deployment_hash] = known
        return known


def calibration_of(outcomes: Sequence[TrialOutcome], setup: StudySetup) -> Calibration:
    """What the launches of a study say; nothing for an engine that predicts or sizes no cache."""
    facts = setup.engine_facts
    study = Context(
        {}, setup.model.facts, setup.hardware, facts, setup.draft, setup.required_tokens
    )
    if facts.predicted or not sizes_a_cache(study):
        return Calibration()
    told = (_launch(outcome, setup) for outcome in outcomes)
    return calibrate([launch for launch in told if launch is not None], study)


def _launch(outcome: TrialOutcome, setup: StudySetup) -> Launch | None:
    """A launch's figures; None if it told none."""
    if not outcome.launched:
        return None
    learnt, effective = outcome.learnt, outcome.manifest.get("effective_args")
    told = effective if isinstance(effective, Mapping) else {}
    told = {**told, **{name: learnt[name] for name in IN_EFFECT if name in learnt}}
    in_effect = {name: float(told[name]) for name in IN_EFFECT if _is_number(told.get(name))}
    cache_gib = _number(learnt, "kv_cache_memory_gib")
    served = setup.selection.serve({**setup.cfg.engine.args, **outcome.deployment})
    request_gib = _request_gib(learnt, cache_gib)
    launch = Launch(
        trial=outcome.number,
        parameters=setup.in_words(served.parameters),
        in_effect=in_effect,
        weights=served.weights,
        model_gib=_number(learnt, "model_memory_gib"),
        cache_gib=cache_gib,
        request_gib=request_gib,
        request_tokens=int(in_effect["max_model_len"])
        if request_gib and "max_model_len" in in_effect
        else None,
        started=outcome.verdict in WORKED,
        short=outcome.verdict is Verdict.CAPACITY and learnt.get("rule") in SHORT,
    )
    figures = (launch.model_gib, launch.cache_gib, launch.request_gib)
    return launch if launch.short or any(each is not None for each in figures) else None


def _request_gib(learnt: Mapping[str, Any], cache_gib: float | None) -> float | None:
    """KV cache of one sequence of `max_model_len`: told in an error, else cache / sequences."""
    needed = _number(learnt, "needed_kv_gib")
    if needed is not None:
        return needed
    sequences = _number(learnt, "max_full_length_requests")
    # Rounded to hundredths on both sides: fewer digits say too little.
    if cache_gib is None or sequences is None or sequences < 1 or cache_gib < 1:
        return None
    return cache_gib / sequences


def _number(learnt: Mapping[str, Any], name: str) -> float | None:
    value = learnt.get(name)
    return float(value) if _is_number(value) and value is not None else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
