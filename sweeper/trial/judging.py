"""Judging a deployment's output, on a server that has borne its load.

    reference text ── agreement ──┐
    the suite ─────── written ────┼──▶ QualityScore ── floors ──▶ QUALITY_FAIL, or nothing
    quality.kind ──── its part ───┘

Reading (agreement and the kind's part) is measured once for each quality key, see
`sweeper.quality.key`; a score that is known is taken over. Writing is measured with it, and once a
study for each way of drafting, which the key leaves out because it must not change the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from sweeper.config.deadlines import quality_s
from sweeper.config.schema import QualityConfig
from sweeper.engine.protocol import RunningServer
from sweeper.load.address import ServerAddress
from sweeper.quality import agreement, written
from sweeper.quality.part import PartFunction, PartJob, PartResult, PrepareFunction
from sweeper.quality.reference import Reference
from sweeper.quality.suite import load_suite
from sweeper.trial.floors import first_broken
from sweeper.trial.outcome import QualityScore
from sweeper.trial.patience import patiently
from sweeper.trial.plan import TrialPlan
from sweeper.trial.progress import Note
from sweeper.trial.state import TrialState
from sweeper.verdicts import Diagnosis, Phase

WRITTEN = "written"
"""Under this name the reference keeps what the defaults wrote several prompts at once."""

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """What a kind of quality measures besides agreement.

    Attributes:
        field: of `QualityScore`, which takes what it found.
        ranked_by: the score's `ranked_by`.
        function: `sweeper.quality.part.PartFunction`, as ``module:name``; imported when needed.
        keeps_own_time: True if it runs a process of its own and ends it by its own deadline; then
            the server's counters may well stand still. Otherwise it shares the phase's deadline,
            and is left behind at once if the server dies or hangs.
        before: what it needs on this machine before anything is launched, as ``module:name`` of a
            `sweeper.quality.part.PrepareFunction`; empty if it needs nothing.
    """

    field: str
    ranked_by: str
    function: str
    keeps_own_time: bool = False
    before: str = ""

    def load(self) -> PartFunction:
        module, name = self.function.split(":")
        return cast(PartFunction, getattr(import_module(module), name))


PARTS: Mapping[str, Part] = {
    "perplexity": Part("perplexity", "perplexity", "sweeper.quality.perplexity:measure"),
    "lm_eval": Part(
        "tasks",
        "tasks",
        "sweeper.quality.tasks:measure",
        keeps_own_time=True,
        before="sweeper.quality.tasks:prepare",
    ),
}
"""Value of `quality.kind` → what it measures; what is missing here measures agreement alone."""


def prepare(quality: QualityConfig, model: str, folder: Path, tell: Callable[[str], None]) -> None:
    """Have on this machine what judging needs, so that no launch is wasted. See `Part.before`.

    Raises:
        ConfigError: what is asked for does not exist.
        QualityUnavailableError: it cannot be had.
    """
    part = PARTS.get(quality.kind)
    if part is not None and part.before:
        module, name = part.before.split(":")
        cast(PrepareFunction, getattr(import_module(module), name))(quality, model, folder, tell)


def judge(state: TrialState, server: RunningServer) -> None:
    """Score the output, take over a score with the same key, or write the reference first.

    An engine that knows the quality of its deployments is asked for it, and nothing is written.

    Raises:
        QualityUnavailableError: it could not be judged.
        EngineError: the server died, hangs, or judging took too long.
    """
    plan = state.plan
    if plan.quality.kind == "none":
        return
    if server.quality is not None:
        state.quality = QualityScore(**{**server.quality(), "key": plan.quality_key})
        return
    known = plan.known_quality
    if known is not None and not plan.to_write:
        state.quality = replace(known, reused=True)
        return
    if plan.reference is None and not plan.may_write_reference:
        return
    with state.during(Phase.QUALITY):
        if known is None:
            _measure(state, server)
        else:
            reference = cast(Reference, plan.reference)
            found = _patiently(state, server, lambda: _write(plan, server, reference))
            state.quality = replace(known, reused=True, written=found)
    _tell(state)


def fault(state: TrialState) -> Diagnosis | None:
    """The first floor that the output fell through, as a verdict; None if it keeps them all."""
    return None if state.quality is None else first_broken(state.quality, state.plan.quality)


@dataclass(frozen=True)
class _Judged:
    """What a server gave whose output was not known."""

    reference: Reference
    score: agreement.Agreement
    written: dict[str, Any]
    part: PartResult | None


def _measure(state: TrialState, server: RunningServer) -> None:
    """Everything of a deployment whose output is not known yet."""
    plan = state.plan
    part = PARTS.get(plan.quality.kind)
    inside = None if part is None or part.keeps_own_time else part
    judged = _patiently(state, server, lambda: _ask(state, server, inside))
    if part is not None and part.keeps_own_time:
        judged = replace(judged, part=_part(state, server, part))
    if plan.reference is None:
        state.reference = replace(judged.reference, parts=_kept(plan, judged))
    state.quality = _score(plan, judged, part)


def _ask(state: TrialState, server: RunningServer, part: Part | None) -> _Judged:
    plan = state.plan
    reference, score = _read(plan, server)
    written_by_it = _write(plan, server, reference)
    result = None if part is None else _part(state, server, part)
    return _Judged(reference, score, written_by_it, result)


def _kept(plan: TrialPlan, judged: _Judged) -> dict[str, Mapping[str, Any]]:
    """What candidates will be compared with, besides the reference's text."""
    kept: dict[str, Mapping[str, Any]] = {}
    if judged.written:
        kept[WRITTEN] = {"digests": judged.written["digests"]}
    if judged.part is not None:
        kept[plan.quality.kind] = judged.part.kept
    return kept


def _score(plan: TrialPlan, judged: _Judged, part: Part | None) -> QualityScore:
    fields: dict[str, Any] = {}
    if part is not None and judged.part is not None:
        fields = {part.field: judged.part.found, "ranked_by": part.ranked_by}
    score = judged.score
    return QualityScore(
        agreement=score.agreement,
        agreement_se=score.agreement_se,
        loglik_change_nats=score.loglik_change.value,
        loglik_change_se_nats=score.loglik_change.se,
        tokens=score.tokens,
        key=plan.quality_key,
        agreement_change=score.change.value,
        agreement_change_se=score.change.se,
        clusters=score.change.clusters,
        written=judged.written,
        **fields,
    )


def _read(plan: TrialPlan, server: RunningServer) -> tuple[Reference, agreement.Agreement]:
    """The score against the reference; where there is none yet, it is written first."""
    address, timeout_s = ServerAddress.of(server), plan.quality.request_timeout_s
    if plan.reference is not None:
        return plan.reference, agreement.score(address, plan.reference, timeout_s)
    suite = load_suite(plan.quality.max_prompts)
    made = agreement.write_reference(address, suite, plan.quality.reference_tokens, timeout_s)
    return made, agreement.own_agreement(made)


def _write(plan: TrialPlan, server: RunningServer, reference: Reference) -> dict[str, Any]:
    """What the deployment writes, see `sweeper.quality.written`; empty if it need not."""
    tokens = written.tokens_to_write(reference, plan.quality.written_tokens)
    if tokens < 1:
        return {}
    address = ServerAddress.of(server)
    texts = written.write_suite(address, reference, tokens, plan.quality.request_timeout_s)
    found = {"drafting": plan.drafting, **written.compare(reference, texts)}
    effect = _drafting_effect(plan, found, reference)
    return {**found, "effect": effect} if effect else found


def _drafting_effect(
    plan: TrialPlan, found: Mapping[str, Any], reference: Reference
) -> dict[str, Any]:
    """What drafting changed: against the same deployment without it; empty if that is unknown."""
    plain, own = plan.plain_written, reference.parts.get(WRITTEN)
    if plain is None or own is None or len(plain) != len(found["digests"]):
        return {}
    alone = [item.reference_ids[: found["tokens"]] for item in reference.items]
    own_changes = written.changed(own["digests"], written.digests(alone))
    changes = written.changed(found["digests"], plain)
    return {
        "changed": sum(changes),
        "own_changed": sum(own_changes),
        "beyond_own": written.is_beyond(changes, own_changes),
    }


def _part(state: TrialState, server: RunningServer, part: Part) -> PartResult:
    plan, function = state.plan, part.load()
    model = plan.conditions.get("model", {})
    job = PartJob(
        server=ServerAddress.of(server),
        config=plan.quality,
        kept=None if plan.reference is None else plan.reference.parts.get(plan.quality.kind),
        tokenizer=str(model.get("path") or plan.checkpoint),
        revision=model.get("revision"),
        trust_remote_code=plan.trust_remote_code,
        run_dir=plan.run_dir,
        tell=lambda text: state.listener(Note(f"trial {plan.number}: {text}")),
    )
    return (
        function(job) if part.keeps_own_time else _patiently(state, server, lambda: function(job))
    )


def _patiently(state: TrialState, server: RunningServer, work: Callable[[], T]) -> T:
    plan = state.plan
    return patiently(
        work,
        server,
        what="judging the output",
        timeout_s=quality_s(plan.quality.timeout_s, plan.start_timeout_s),
        hang_timeout_s=plan.hang_after_s,
    )


def _tell(state: TrialState) -> None:
    """Say what must not happen, if it does: batching or drafting changed what is written."""
    found = {} if state.quality is None else state.quality.written
    if not found:
        return
    prompts, plan = found["prompts"], state.plan
    if state.reference is not None and found["identical"] < prompts:
        changed = prompts - found["identical"]
        state.listener(
            Note(
                f"batching changed the greedy output of {changed} of {prompts} prompts at the "
                "defaults: written several at once, they differ from one at a time"
            )
        )
    effect = found.get("effect")
    if effect and effect["changed"]:
        kept = prompts - effect["own_changed"]
        beyond = "" if effect["beyond_own"] else ", so this may be their own rounding"
        state.listener(
            Note(
                f"{plan.drafting or 'no speculation'} changed the greedy output of "
                f"{effect['changed']} of {prompts} prompts; the defaults themselves reproduce "
                f"{kept} of {prompts}{beyond}"
            )
        )
