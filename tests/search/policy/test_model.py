from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sweeper.search.policy.features import Features
from sweeper.search.policy.model import Model, learn
from sweeper.search.policy.threads import one_thread
from sweeper.space.canonical import deployment_hash, enumerate_canonical
from tests.search.policy.test_next_best import chooser
from tests.search.policy.toy import SPACE, fails, measured, objective

FEATURES = Features(SPACE)
EVERYTHING = enumerate_canonical(SPACE, 1000) or []
SEEN: list[dict[str, Any]] = [{}, *EVERYTHING[1::5]]
JOURNAL = [measured(one, number) for number, one in enumerate(SEEN)]


def model() -> Model:
    learnt = learn(objective(), FEATURES, JOURNAL)
    assert learnt is not None
    return Model(learnt, FEATURES.groups)


def test_what_failed_lowers_the_chance_of_what_is_like_it_and_never_to_nothing() -> None:
    new = [one for one in EVERYTHING if one not in SEEN]
    with one_thread():
        chance = model().chance(FEATURES.of(new))
    failing = np.array([fails(one) for one in new])
    assert chance[failing].mean() < 0.5 * chance[~failing].mean()
    assert chance.min() > 0 and chance.max() < 1


def test_gain_is_weighed_by_the_chance_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    new = FEATURES.of([one for one in EVERYTHING if one not in SEEN])

    def gain(chance: float) -> Any:
        monkeypatch.setattr(Model, "chance", lambda self, x: np.full(len(x), chance))
        with one_thread():
            return model().gain(new, None, np.random.default_rng(1))

    assert gain(0.5) == pytest.approx(0.5 * gain(1.0))


def test_what_is_being_tried_is_believed_and_promises_no_more() -> None:
    with one_thread():
        before = model()
        trying = FEATURES.of([{"quantization": "fp8_per_tensor", "max_num_seqs": 64}])
        after = before.believing(trying, None)
        (mean, spread), (same, less) = before.predict(trying), after.predict(trying)
    assert same == pytest.approx(mean, abs=0.05)
    assert (less < 0.6 * spread).all()


def test_a_choice_takes_account_of_what_is_being_tried() -> None:
    """What is like it promises less, now that its own gain is counted on."""
    few = JOURNAL[:6]
    decide = chooser()

    def promised(trying: dict[str, dict[str, Any]]) -> dict[str, float]:
        decide.choose(few, trying)
        assert decide._ranked is not None
        return {digest: gain for gain, digest, _ in decide._ranked[1]}

    first = decide.choose(few, {})
    assert first is not None
    before, after = promised({}), promised({deployment_hash(first): first})
    assert sum(after.values()) < 0.7 * sum(before[digest] for digest in after)
