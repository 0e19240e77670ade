"""What the search asks of priors: seeds one at a time, expected curves, the order among equals.

    baseline measured → priors calibrated by it → seed → measured → trusted more or less → seed …
                                        no trust left, or nothing to gain: no seed ┘

A seed is what would add most to what is known: measured curves, and the predicted curves of what
was tried (else a prior that is too optimistic somewhere would be asked there again and again).
Priors take turns, those with more weight first. Everything follows from the configuration and the
journal: the same outcomes give the same next seed, so a study that is taken up again goes on alike.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from sweeper.config.schema import SweeperConfig
from sweeper.search.priors.prior import Deployment, Prior, Say
from sweeper.search.priors.voice import Voice, alike
from sweeper.search.priors.worth import Worth, as_points
from sweeper.space.canonical import (
    as_raw,
    baseline,
    canonical,
    deployment_hash,
    enumerate_canonical,
)
from sweeper.space.model import Space
from sweeper.trial.outcome import Point, TrialOutcome
from sweeper.verdicts import Verdict

MANIFEST = "prior"
"""Where a trial's manifest keeps what was predicted of it."""

Raw = dict[str, Any]
Promise = Callable[[str], float]
"""Hash of a deployment → what it is predicted to add."""
Refused = Callable[[Deployment], bool]

ENUMERATION_LIMIT = 20_000
POOL = 3_000
"""Deployments among which seeds are looked for; a sample of a larger space."""
LEAST_TRUST = 0.3
"""Below it a prior neither seeds nor orders: the sampler's own proposals are worth as much."""
LEAST_GAIN = 0.002
"""Share of the area known that a seed must promise to add."""
ALIKE = 0.01
"""Metrics nearer than this share are the same prediction."""


class Guide:
    """Leads a search by its priors. Without any it leads nowhere, and costs nothing.

    Args:
        priors: in the order of what they know.
        cfg: the study's configuration.
        space: what is searched.
        refused: whether a deployment would not be launched.
        say: told what the priors cannot tell, once that is known.
    """

    def __init__(
        self,
        priors: Sequence[Prior],
        cfg: SweeperConfig,
        space: Space,
        refused: Refused = lambda deployment: False,
        say: Say = lambda text: None,
    ) -> None:
        self._voices = [Voice(prior) for prior in priors]
        self._cfg = cfg
        self._space = space
        self._refused = refused
        self._say = say
        base = baseline(space)
        self._own_seeds = {
            deployment_hash(canonical(space, {**base, **seed})) for seed in space.seeds
        }
        self._suggested = {
            voice.prior.kind: {
                deployment_hash(one): one
                for raw in voice.prior.suggestions()
                for one in [canonical(space, {**base, **raw})]
            }
            for voice in self._voices
        }
        self._outcomes: dict[str, TrialOutcome] = {}
        self._measured: dict[str, float] = {}
        self._worth: Worth | None = None
        self._pool: dict[str, Deployment] = {}
        self._digests: dict[tuple[tuple[str, Any], ...], str] = {}

    @property
    def weights(self) -> dict[str, float]:
        """How far each prior is followed now, 0 to 1."""
        return {voice.prior.kind: voice.weight for voice in self._voices}

    @property
    def weight(self) -> float:
        """Of the prior that is followed most, among those that order; 0 if none is."""
        told = max((voice.weight for voice in self._voices if voice.ranked), default=0.0)
        return told if self._cfg.prior.order and told >= LEAST_TRUST else 0.0

    def learn(self, outcome: TrialOutcome) -> None:
        """Take note of an outcome; of several of one deployment the last counts."""
        if not self._voices or outcome.repeats is not None:
            return
        digest = outcome.deployment_hash
        self._outcomes[digest] = outcome
        is_measured = outcome.verdict is Verdict.OK and bool(outcome.valid_points)
        if outcome.kind == "baseline" and is_measured and self._worth is None:
            self._begin(outcome)
        if self._worth is None or not is_measured or outcome.partial is not None:
            return
        value = self._worth.of(outcome.valid_points)
        if value is None:
            return
        self._measured[digest] = value
        for voice in self._voices:
            voice.consult_outright({digest: outcome.deployment})
            guesses = {one: self._guess(voice, one) for one in self._measured}
            voice.weigh(guesses, self._measured)
            voice.forget(self._pool.keys() | self._outcomes.keys())

    def seeds(self, count: int = 1) -> list[Raw]:
        """The next deployments to try, at most so many, as full raw coordinates.

        Empty before the baseline was measured, when `prior.seeds` were launched, and when no
        prior is trusted or promises anything more.
        """
        used = sum(
            outcome.kind == "seed" and digest not in self._own_seeds
            for digest, outcome in self._outcomes.items()
        )
        found: dict[str, Deployment] = {}
        for turn in range(used, min(used + count, self._cfg.prior.seeds)):
            seed = self._seed(turn, found)
            if seed is None:
                break
            found[deployment_hash(seed)] = seed
        return [as_raw(self._space, deployment) for deployment in found.values()]

    def pick(self, candidates: Sequence[Raw]) -> Raw:
        """Of candidates between which the search has no preference, the one to try.

        The best by the priors' opinion; what leaves most to the engine where they have none.
        """
        if self.weight <= 0:
            return min(candidates, key=len)
        told = self.opinion([canonical(self._space, candidate) for candidate in candidates])
        ranked = zip(told, candidates, strict=True)
        return max(ranked, key=lambda entry: (entry[0] or 0.0, -len(entry[1])))[1]

    def expect(self, deployments: Sequence[Deployment]) -> list[Sequence[Point] | None]:
        """Calibrated load curves of canonical deployments, by the prior that is followed most.

        None where it has nothing to say, and of all once no prior is followed any more.
        """
        voices = [voice for voice in self._voices if voice.ranked]
        voice = max(voices, key=lambda one: one.weight, default=None)
        if voice is None or self.weight <= 0:
            return [None] * len(deployments)
        digests = [self._digest(deployment) for deployment in deployments]
        voice.consult(dict(zip(digests, deployments, strict=True)))
        return [voice.curve(digest) or None for digest in digests]

    def opinion(self, deployments: Sequence[Deployment]) -> list[float | None]:
        """What the priors think of canonical deployments together: the mean, by their weights, of
        the share of the space that each is predicted to beat. None where none has a say.
        """
        asked = {self._digest(one): one for one in deployments}
        voices = [voice for voice in self._voices if voice.weight > 0 and voice.ranked]
        for voice in voices:
            voice.consult(asked)
        return [_opinion(voices, self._digest(one)) for one in deployments]

    def conditions(self, deployment: Deployment) -> dict[str, Any]:
        """What a trial's manifest keeps of what was predicted of it, see `record`; empty without.

        kind → level → metric → value, as the source has it: not calibrated.
        """
        digest = deployment_hash(deployment)
        told: dict[str, dict[str, dict[str, float]]] = {}
        for voice in self._voices:
            voice.consult_outright({digest: deployment})
            prediction = voice.prediction(digest)
            if prediction is not None:
                points = as_points(prediction, {})
                told[voice.prior.kind] = {point.level: dict(point.metrics) for point in points}
        return {MANIFEST: told} if told else {}

    def _begin(self, outcome: TrialOutcome) -> None:
        """Once the baseline is known."""
        self._worth = Worth(self._cfg, outcome)
        drawn = {deployment_hash(one): one for one in self._drawn()}
        self._pool = {digest: one for digest, one in drawn.items() if not self._refused(one)}
        for voice in self._voices:
            voice.begin(outcome, self._worth, self._pool)
            for note in voice.prior.notes:
                self._say(f"prior {voice.prior.kind}: {note}")

    def _drawn(self) -> list[Deployment]:
        """The pool: the whole space, or a sample of a large one."""
        everything = enumerate_canonical(self._space, ENUMERATION_LIMIT)
        chance = random.Random(self._cfg.sampler.seed)
        if everything is None:
            return [canonical(self._space, random_raw(self._space, chance)) for _ in range(POOL)]
        return [*everything] if len(everything) <= POOL else chance.sample([*everything], POOL)

    def _digest(self, deployment: Deployment) -> str:
        """`deployment_hash`, kept: the same candidates come again at every step."""
        key = tuple(deployment.items())
        found = self._digests.get(key)
        if found is None:
            if len(self._digests) > 2 * ENUMERATION_LIMIT:
                self._digests.clear()
            found = self._digests[key] = deployment_hash(deployment)
        return found

    def _guess(self, voice: Voice, digest: str) -> float | None:
        """What a prior says of a trial's worth. One that only suggests says: above the baseline."""
        if voice.ranked:
            return voice.worth(digest)
        if self._outcomes[digest].kind == "baseline":
            return 0.0
        return 1.0 if digest in self._suggested[voice.prior.kind] else None

    def _seed(self, turn: int, chosen: Mapping[str, Deployment]) -> Deployment | None:
        """The next seed, of the prior whose turn it is or of one after it."""
        if self._worth is None:
            return None
        trusted = [voice for voice in self._voices if voice.weight >= LEAST_TRUST]
        trusted.sort(key=lambda voice: -voice.weight)
        taken = self._outcomes.keys() | chosen.keys()
        for step in range(len(trusted)):
            voice = trusted[(turn + step) % len(trusted)]
            for digest, deployment in self._suggested[voice.prior.kind].items():
                if digest not in taken and not self._refused(deployment):
                    return deployment
            found = self._best(voice, taken)
            if found is not None:
                return found
        return None

    def _best(self, voice: Voice, taken: set[str]) -> Deployment | None:
        """The deployment that a prior promises most of, and that it can tell from those taken."""
        promised = self._promise(voice, taken)
        promises = ((promised(digest), digest) for digest in self._pool if digest not in taken)
        ranked = [(-promise, digest) for promise, digest in promises if promise > -math.inf]
        heapify(ranked)
        while ranked:
            least, digest = heappop(ranked)
            best = self._pool[digest]
            if self._refused(best):
                continue
            voice.consult_outright({digest: best})
            promise = promised(digest)
            if promise >= -least:
                return self._plainest(voice, best, taken, promised)
            if promise > -math.inf:  # less than what was inferred: its turn comes later
                heappush(ranked, (-promise, digest))
        return None

    def _plainest(
        self, voice: Voice, best: Deployment, taken: set[str], promised: Promise
    ) -> Deployment:
        """The same without what promises nothing: what a prior cannot tell is left to the engine.

        Parents come first, so that a branch without effect is closed as a whole. Twice, because
        what is refused beside one value may be launched beside another.
        """
        most, plain = promised(deployment_hash(best)), best
        for parameter in self._space.parameters * 2:
            if parameter.name not in plain:
                continue
            raw = {**as_raw(self._space, plain), parameter.name: parameter.default}
            plainer = canonical(self._space, raw)
            digest = deployment_hash(plainer)
            voice.consult_outright({digest: plainer})
            if digest not in taken and promised(digest) >= most and not self._refused(plainer):
                plain = plainer
        return plain

    def _promise(self, voice: Voice, taken: set[str]) -> Promise:
        """What a deployment of the pool is predicted to add; -inf for nothing worth a launch.

        One that failed to run is not held against those that are predicted like it.
        """
        assert self._worth is not None
        area, known = self._worth.area, [self._outcomes[one].valid_points for one in self._measured]
        failed = self._outcomes.keys() - self._measured.keys()
        foreseen = [voice.curve(digest) for digest in sorted(taken - failed)]
        together = self._worth.outline(point for curve in (*known, *foreseen) for point in curve)
        before, best = area(together), max(self._measured.values())

        def promised(digest: str) -> float:
            worth, curve = voice.worth(digest), voice.curve(digest)
            if worth is None:
                return -math.inf
            if before is not None:
                gain = (area([*together, *curve]) or 0.0) - before
                return gain if gain > LEAST_GAIN * before else -math.inf
            is_new = worth > best or not any(alike(curve, other, ALIKE) for other in foreseen)
            return worth if is_new else -math.inf

        return promised


def _opinion(voices: Sequence[Voice], digest: str) -> float | None:
    told = [
        (voice.weight, share)
        for voice in voices
        if (share := voice.beaten_share(digest)) is not None
    ]
    total = math.fsum(weight for weight, _ in told)
    return math.fsum(weight * share for weight, share in told) / total if total else None


def random_raw(space: Space, chance: random.Random) -> Raw:
    """Coordinates drawn evenly, parameter by parameter."""
    return {
        parameter.name: chance.choice(parameter.values)
        if parameter.values is not None
        else chance.uniform(float(parameter.low or 0), float(parameter.high or 0))
        for parameter in space.parameters
    }
