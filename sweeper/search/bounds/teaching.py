"""What one kind of failure teaches, as a value: which way is worse, and what must be the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.search.bounds.at_fault import Blamed
from sweeper.search.bounds.bound import Relation, Rest
from sweeper.space.model import Scalar


@dataclass(frozen=True)
class Worse:
    """One direction in which a deployment can only fare worse.

    Attributes:
        relation: of a worse value to the failed trial's own.
        why: the proof, in a sentence.
        figure: name of a figure in `learnt` that takes the place of the trial's own value.
        figure_relation: of a worse value to that figure.
        value: a fixed value instead of the trial's own.
        trusted: whether the figure may be used for this deployment.
    """

    relation: Relation
    why: str
    figure: str = ""
    figure_relation: Relation = Relation.ABOVE
    value: Scalar | None = None
    trusted: Callable[[Mapping[str, Any]], bool] = lambda _: True


@dataclass(frozen=True)
class Teaching:
    """What one kind of failure teaches.

    Attributes:
        told: what happened, to follow "trial 4".
        worse: parameter → its worse direction.
        same: parameters that must be the same.
        kept: parameters that may be to blame: the same where the trial set them; where it did not,
            setting them takes no cause away.
        rest: what is asked of all others.
        blamed: finds the parameters that the diagnosis itself names, see `at_fault`.
    """

    told: str
    worse: Mapping[str, Worse] = field(default_factory=dict)
    same: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    rest: Rest = Rest.FLAGS_SAME
    blamed: Blamed | None = None


def in_memory(told: str, worse: Mapping[str, Worse]) -> Teaching:
    """Of what ran out of memory: everything that has no worse direction must be the same.

    `enforce_eager`, precisions, drafts and block sizes among them: compiling lowers activations and
    capturing graphs raises memory, a draft brings weights of its own, and which quantization is
    the smaller one depends on the checkpoint.
    """
    return Teaching(told, worse, rest=Rest.SAME)


def for_good(told: str, *same: str, kept: tuple[str, ...] = ("speculative",)) -> Teaching:
    """Of values that are refused by themselves, whatever the others are.

    A draft model is a model too, and may be the one that was refused: speculation is kept.
    """
    return Teaching(told, same=same, kept=kept)


def only_one(told: str, parameter: str, why: str) -> Teaching:
    """Of a parallelism that is refused at every size."""
    worse = {parameter: Worse(Relation.ABOVE, why, value=1)}
    return Teaching(told, worse, kept=("speculative",))
