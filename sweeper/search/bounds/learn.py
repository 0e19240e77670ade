"""From the journal to the bounds it teaches. Pure, and the same for every order of its lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.search.bounds import unmade
from sweeper.search.bounds.bound import Bound, Limit, Relation, Rest, is_number
from sweeper.search.bounds.teaching import Teaching, Worse
from sweeper.search.bounds.teachings import NCCL, NCCL_IN_A_ROW, teaching_for
from sweeper.trial.outcome import TrialOutcome
from sweeper.verdicts import Phase, Verdict

LEARNT_BOUND = "learnt_bound"
"""`learnt["rule"]` of a trial that was refused by a bound; its id is `learnt["bound"]`."""

STEADY = (
    "gpu_memory_utilization",
    "max_model_len",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
)
"""Parameters whose default does not depend on others. (Default batch limits follow each other.)"""


@dataclass(frozen=True)
class Lessons:
    """What a journal teaches.

    Attributes:
        active: bounds that hold, oldest first.
        dropped: bounds that the study's user took back.
        contradicted: bounds inside which a trial worked, and that trial's number.
    """

    active: tuple[Bound, ...] = ()
    dropped: tuple[Bound, ...] = ()
    contradicted: tuple[tuple[Bound, int], ...] = ()

    @property
    def everything(self) -> tuple[Bound, ...]:
        """All bounds, whatever became of them, oldest first."""
        found = [*self.active, *self.dropped, *(bound for bound, _ in self.contradicted)]
        return tuple(sorted(found, key=_age))

    def refusing(self, deployment: Mapping[str, Any]) -> Bound | None:
        """The oldest active bound that excludes a deployment."""
        return next((bound for bound in self.active if bound.excludes(deployment)), None)

    def is_lifted(self, outcome: TrialOutcome) -> bool:
        """True for a trial that was refused by a bound which no longer holds: it is still open."""
        refused_by = refusing_bound(outcome)
        return refused_by is not None and all(bound.id != refused_by for bound in self.active)


def learn_bounds(outcomes: Iterable[TrialOutcome], dropped: Collection[str] = ()) -> list[Bound]:
    """The bounds that hold.

    Args:
        outcomes: the journal, in any order.
        dropped: ids of bounds that do not count.
    """
    return list(learn(outcomes, dropped).active)


def learn(outcomes: Iterable[TrialOutcome], dropped: Collection[str] = ()) -> Lessons:
    """Everything that failed launches teach, and what became of it.

    Args:
        outcomes: the journal, in any order.
        dropped: ids of bounds that its user took back.
    """
    learner = Learner()
    learner.follow(sorted(outcomes, key=_turn))
    return learner.lessons(dropped)


class Learner:
    """Learns from a journal as it grows, so that an outcome costs what it teaches.

    Of a bound it is remembered how many trials that worked have been held against it, and of a
    trial whether it may teach at all: nearly none does.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._taken = 0
        self._last = (-1, 0)
        self._told: dict[str, set[float]] = {}
        self._teachers: dict[int, TrialOutcome] = {}
        self._worked: list[TrialOutcome] = []
        self._launched: list[TrialOutcome] = []
        self._lost_touch = False
        self._held: dict[str, _Held] = {}

    def follow(self, outcomes: Sequence[TrialOutcome]) -> None:
        """Take up what has come to a journal since the last time; it only grows."""
        fresh = outcomes[self._taken :]
        if any(_turn(outcome) < self._last for outcome in fresh):
            # A second attempt of an earlier trial: lessons go by trials, not by lines.
            self._forget()
            fresh = sorted(outcomes, key=_turn)
        for outcome in fresh:
            self._take(outcome)
            self._last = _turn(outcome)
        self._taken = len(outcomes)

    def lessons(self, dropped: Collection[str] = ()) -> Lessons:
        """What has been learnt so far, see `learn`."""
        defaults = _agreed(self._told)
        found = [bound for one in self._teachers.values() for bound in _taught_by(one, defaults)]
        if self._lost_touch:
            found += _out_of_touch(self._launched, defaults)
        active, taken_back, contradicted = [], [], []
        for bound in sorted(found, key=_age):
            against = self._contradiction(bound)
            if against is not None:
                contradicted.append((bound, against))
            elif bound.id in dropped:
                taken_back.append(bound)
            else:
                active.append(bound)
        return Lessons(tuple(active), tuple(taken_back), tuple(contradicted))

    def _take(self, outcome: TrialOutcome) -> None:
        self._teachers.pop(outcome.number, None)
        if _teaching(outcome, str(outcome.learnt.get("rule", ""))) is not None:
            self._teachers[outcome.number] = outcome
        if outcome.verdict is Verdict.OK:
            self._worked.append(outcome)
        if outcome.launched:
            self._launched.append(outcome)
            self._lost_touch |= outcome.learnt.get("rule") == NCCL
            _note_defaults(outcome, self._told)

    def _contradiction(self, bound: Bound) -> int | None:
        """Number of a trial that worked inside the region."""
        held = self._held.get(bound.id)
        if held is None or held.bound != bound:
            held = self._held[bound.id] = _Held(bound)
        if held.against is None:
            held.against = _contradiction(bound, self._worked[held.checked :])
        held.checked = len(self._worked)
        return held.against


@dataclass
class _Held:
    """A bound, and how far it has been held against trials that worked."""

    bound: Bound
    checked: int = 0
    against: int | None = None


def known_defaults(outcomes: Iterable[TrialOutcome]) -> dict[str, float]:
    """Values in effect where a parameter is left out: those on which all launches agree.

    Running servers tell them in their manifest, failed ones in the text of their failure.
    """
    told: dict[str, set[float]] = {}
    for outcome in outcomes:
        if outcome.launched:
            _note_defaults(outcome, told)
    return _agreed(told)


def _note_defaults(launch: TrialOutcome, told: dict[str, set[float]]) -> None:
    effective = launch.manifest.get("effective_args")
    for source in (effective if isinstance(effective, Mapping) else {}, launch.learnt):
        for name in STEADY:
            if name not in launch.deployment and is_number(source.get(name)):
                told.setdefault(name, set()).add(source[name])


def _agreed(told: Mapping[str, set[float]]) -> dict[str, float]:
    return {name: next(iter(values)) for name, values in told.items() if len(values) == 1}


def refusing_bound(outcome: TrialOutcome) -> str | None:
    """Id of the bound that refused a trial, None if none did."""
    learnt = outcome.learnt
    is_refused = not outcome.launched and learnt.get("rule") == LEARNT_BOUND
    return str(learnt.get("bound")) if is_refused else None


def refused_counts(outcomes: Iterable[TrialOutcome]) -> dict[str, int]:
    """Id of a bound → deployments that it refused."""
    refused: dict[str, set[str]] = {}
    for outcome in outcomes:
        bound = refusing_bound(outcome)
        if bound is not None:
            refused.setdefault(bound, set()).add(outcome.deployment_hash)
    return {bound: len(hashes) for bound, hashes in refused.items()}


def _turn(outcome: TrialOutcome) -> tuple[int, int]:
    return outcome.number, outcome.attempt


def _age(bound: Bound) -> tuple[int, str]:
    return bound.trial, bound.id


def _contradiction(bound: Bound, worked: Sequence[TrialOutcome]) -> int | None:
    """Number of a trial that worked inside the region."""
    for outcome in worked:
        if (outcome.number, outcome.attempt) > bound.since and bound.excludes(outcome.deployment):
            return outcome.number
    return None


def _taught_by(outcome: TrialOutcome, defaults: Mapping[str, Any]) -> list[Bound]:
    rule = str(outcome.learnt.get("rule", ""))
    teaching = _teaching(outcome, rule)
    if teaching is None or not _sets_any(outcome.deployment, teaching):
        return []
    teacher = {**defaults, **outcome.deployment}
    regions = (
        [_limits(teaching, outcome.learnt, outcome.deployment, teacher)]
        if teaching.blamed is None
        else teaching.blamed(outcome.learnt, outcome.deployment)
    )
    found = []
    for limits in regions:
        suffix = f"-{limits[0].parameter}" if len(regions) > 1 else ""
        bound = _bound(f"{rule}-{outcome.number}{suffix}", teaching, outcome, limits, defaults)
        if bound.excludes(outcome.deployment):
            found.append(bound)
    return found


def _teaching(outcome: TrialOutcome, rule: str) -> Teaching | None:
    if outcome.phase == Phase.QUANTIZE:
        return unmade.teaching_of(rule) if unmade.is_certain(outcome) else None
    if not outcome.launched or not outcome.verdict.is_config_fault or rule == NCCL:
        return None
    crashed = outcome.verdict is Verdict.CRASH_UNDER_LOAD
    return teaching_for(rule, "load" if crashed else str(outcome.learnt.get("stage", "")))


def _sets_any(deployment: Mapping[str, Any], teaching: Teaching) -> bool:
    """False if the deployment left everything that could be to blame at its default."""
    suspects = (*teaching.worse, *teaching.same, *teaching.kept)
    is_particular = teaching.rest is not Rest.SAME and teaching.blamed is None
    return not is_particular or any(name in deployment for name in suspects)


def _bound(
    bound_id: str,
    teaching: Teaching,
    outcome: TrialOutcome,
    limits: tuple[Limit, ...],
    defaults: Mapping[str, Any],
) -> Bound:
    return Bound(
        id=bound_id,
        rule=str(outcome.learnt.get("rule", "")),
        trial=outcome.number,
        # What is not the deployment's fault says of it only that it cannot run here.
        verdict=str(
            outcome.verdict if outcome.verdict.is_config_fault else Verdict.INFEASIBLE_CONFIG
        ),
        told=teaching.told,
        remedy=outcome.remedy,
        limits=limits,
        rest=teaching.rest,
        teacher={**defaults, **outcome.deployment},
        defaults=defaults,
    )


def _limits(
    teaching: Teaching,
    learnt: Mapping[str, Any],
    deployment: Mapping[str, Any],
    teacher: Mapping[str, Any],
) -> tuple[Limit, ...]:
    kept = (name for name in teaching.kept if name in deployment)
    pinned = dict.fromkeys((*teaching.same, *kept))
    return (
        *(
            _limit(name, worse, learnt, deployment, teacher.get(name))
            for name, worse in teaching.worse.items()
        ),
        *(Limit(name, Relation.SAME, teacher.get(name)) for name in pinned),
    )


def _limit(
    name: str,
    worse: Worse,
    learnt: Mapping[str, Any],
    deployment: Mapping[str, Any],
    own: Any,
) -> Limit:
    """The sharpest limit that still holds for the trial's own value."""
    if worse.value is not None:
        return Limit(name, worse.relation, worse.value)
    figure = learnt.get(worse.figure)
    if is_number(figure) and worse.trusted(deployment):
        sharp = Limit(name, worse.figure_relation, figure)
        if sharp.holds(own):
            return sharp
    return Limit(name, worse.relation if is_number(own) else Relation.SAME, own)


def _out_of_touch(ordered: Sequence[TrialOutcome], defaults: Mapping[str, Any]) -> list[Bound]:
    """No further tensor parallelism once launches in a row failed in the devices' communication."""
    teaching = teaching_for(NCCL, "")
    run: list[TrialOutcome] = []
    found: dict[str, Bound] = {}
    for outcome in ordered:
        devices = {**defaults, **outcome.deployment}.get("tensor_parallel_size")
        is_spread = is_number(devices) and float(devices or 0) > 1
        if not outcome.launched or not is_spread:
            continue
        failed = outcome.verdict is not Verdict.OK and outcome.learnt.get("rule") == NCCL
        run = [*run, outcome] if failed else []
        if teaching is not None and len(run) >= NCCL_IN_A_ROW:
            bound = Bound(
                id=f"{NCCL}-{run[0].number}",
                rule=NCCL,
                trial=outcome.number,
                # The machine's fault; of the deployment it only says that it cannot run here.
                verdict=str(Verdict.INFEASIBLE_CONFIG),
                told=teaching.told,
                remedy=outcome.remedy,
                limits=tuple(
                    Limit(name, worse.relation, worse.value)
                    for name, worse in teaching.worse.items()
                ),
                rest=Rest.ANY,
                teacher={**defaults, **outcome.deployment},
                defaults=defaults,
                since=(outcome.number, outcome.attempt),
            )
            found[bound.id] = bound
    return list(found.values())
