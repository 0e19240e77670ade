"""One prior in one study: what it predicted so far, calibrated, and how far it is followed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence

from sweeper.search.priors.prior import FEW, Deployment, Prediction, Prior
from sweeper.search.priors.trust import weight
from sweeper.search.priors.worth import Ratios, Worth, as_points, ratios
from sweeper.trial.outcome import Point, TrialOutcome

MOST_KEPT = 60_000
"""Deployments whose predictions are held; a study of a large space sees ever new candidates."""

Digests = Mapping[str, Deployment]
"""Hash → canonical deployment."""


class Voice:
    """A prior, and what is known of it.

    Args:
        prior: itself.

    Attributes:
        weight: how far it is followed now, 0 to 1.
        ranked: worths that it predicts of the pool, rising; empty until the baseline is known,
            and for a prior that predicts nothing.
    """

    def __init__(self, prior: Prior) -> None:
        self.prior = prior
        self.weight = prior.trust
        self.ranked: list[float] = []
        self._predictions: dict[str, Prediction | None] = {}
        self._curves: dict[str, list[Point]] = {}
        self._worths: dict[str, float | None] = {}
        self._outright: set[str] = set()
        self._scale: Ratios = {}
        self._worth: Worth | None = None

    def begin(self, baseline: TrialOutcome, worth: Worth, pool: Digests) -> None:
        """Calibrate by the baseline, and predict the pool."""
        self._worth = worth
        digest = baseline.deployment_hash
        self.consult({digest: baseline.deployment})
        self._scale = ratios(self._predictions[digest], baseline)
        self.consult(pool)
        self._look_closer(pool)
        worths = (self.worth(digest) for digest in pool)
        self.ranked = sorted(found for found in worths if found is not None)

    def consult(self, deployments: Digests) -> None:
        """Ask the prior for what it was not asked yet."""
        asked = {
            digest: one for digest, one in deployments.items() if digest not in self._predictions
        }
        if asked:
            answers = self.prior.predict(list(asked.values()))
            self._predictions.update(zip(asked, answers, strict=True))

    def consult_outright(self, deployments: Digests) -> None:
        """The same, and once more for what was only inferred. Of `FEW` at most."""
        self.consult(deployments)
        for digest in deployments:
            prediction = self._predictions[digest]
            if prediction is not None and prediction.inferred and digest not in self._outright:
                for table in (self._predictions, self._curves, self._worths):
                    table.pop(digest, None)
        self._outright.update(deployments)
        self.consult(deployments)

    def prediction(self, digest: str) -> Prediction | None:
        """As it came from its source."""
        return self._predictions.get(digest)

    def curve(self, digest: str) -> list[Point]:
        """The calibrated prediction as points; empty where there is none."""
        found = self._curves.get(digest)
        if found is None:
            prediction = self._predictions.get(digest)
            found = [] if prediction is None else as_points(prediction, self._scale)
            self._curves[digest] = found
        return found

    def worth(self, digest: str) -> float | None:
        """What the calibrated prediction is worth to the study."""
        if digest not in self._worths:
            assert self._worth is not None, "asked before the baseline was measured"
            curve = self.curve(digest)
            self._worths[digest] = self._worth.of(curve) if curve else None
        return self._worths[digest]

    def beaten_share(self, digest: str) -> float | None:
        """Share of the pool that is predicted to be worth less; of equals one half."""
        worth = self.worth(digest)
        if worth is None or not self.ranked:
            return None
        middle = (bisect_left(self.ranked, worth) + bisect_right(self.ranked, worth)) / 2
        return middle / len(self.ranked)

    def weigh(self, guesses: Mapping[str, float | None], measured: Mapping[str, float]) -> None:
        """Follow it as far as it was right.

        Args:
            guesses: hash → what it said a trial is worth.
            measured: hash → what the trial was worth.
        """
        both = [
            (guess, value)
            for digest, value in measured.items()
            if (guess := guesses.get(digest)) is not None
        ]
        self.weight = weight(
            self.prior.trust, [guess for guess, _ in both], [value for _, value in both]
        )

    def forget(self, kept: Collection[str]) -> None:
        """Drop what was predicted of passing candidates, where it has become much."""
        if len(self._predictions) > MOST_KEPT:
            self._outright &= set(kept)
            for table in (self._predictions, self._curves, self._worths):
                for digest in [digest for digest in table if digest not in kept]:
                    del table[digest]

    def _look_closer(self, pool: Digests) -> None:
        """Ask outright of the best that were only inferred: they are what seeds come from."""
        inferred: list[tuple[float, str]] = []
        for digest in pool:
            prediction = self._predictions[digest]
            if prediction is not None and prediction.inferred:
                worth = self.worth(digest)
                if worth is not None:
                    inferred.append((worth, digest))
        best = [digest for _, digest in sorted(inferred, reverse=True)[:FEW]]
        self.consult_outright({digest: pool[digest] for digest in best})


def alike(one: Sequence[Point], other: Sequence[Point], share: float) -> bool:
    """Whether no metric of two predicted curves differs by more than a share."""
    if [point.level for point in one] != [point.level for point in other]:
        return False
    return all(
        abs(a.metrics[name] - b.metrics[name]) <= share * abs(a.metrics[name])
        for a, b in zip(one, other, strict=True)
        for name in a.metrics.keys() & b.metrics.keys()
    )
