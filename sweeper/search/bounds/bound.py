"""A bound: the region of the space that one failed launch proves hopeless. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sweeper.space.catalogue import RECIPE_PREFIX, is_free
from sweeper.space.match import same
from sweeper.space.model import Scalar


class Relation(StrEnum):
    """How a parameter of a deployment inside a region stands to the limit's value."""

    SAME = "="
    AT_MOST = "≤"
    AT_LEAST = "≥"
    ABOVE = ">"
    IS_SET = "is set"
    NO_DIVISOR_OF = "does not divide"
    NO_MULTIPLE_OF = "is no multiple of"


class Rest(StrEnum):
    """What is asked of the parameters that no limit names."""

    SAME = "the same as in the trial that taught it"
    FLAGS_SAME = "free flags and environment variables the same, anything else does not matter"
    RECIPE_SAME = "what a checkpoint is made by the same, anything else does not matter"
    ANY = "does not matter"


@dataclass(frozen=True)
class Limit:
    """One parameter's part of a region.

    Attributes:
        parameter: its name.
        relation: how its value stands to `value`.
        value: of the limit; None is a parameter that is left out (`SAME`), or unused (`IS_SET`).
    """

    parameter: str
    relation: Relation
    value: Scalar | None = None

    def holds(self, value: Any) -> bool:
        """Whether a deployment's value (None: left out, its default unknown) is inside."""
        if self.relation is Relation.SAME:
            return alike(value, self.value)
        if self.relation is Relation.IS_SET:
            return value is not None
        if not is_number(value) or not is_number(self.value):
            return False
        return _compares(self.relation, float(value), float(self.value))  # type: ignore[arg-type]

    def __str__(self) -> str:
        if self.relation is Relation.IS_SET:
            return f"{self.parameter} set"
        if self.relation is Relation.SAME:
            return f"{self.parameter}" + (
                " left out" if self.value is None else f"={_plain(self.value)}"
            )
        words = {Relation.NO_DIVISOR_OF: "that does not divide",
                 Relation.NO_MULTIPLE_OF: "that is no multiple of"}  # fmt: skip
        return f"{self.parameter} {words.get(self.relation, self.relation)} {_plain(self.value)}"


@dataclass(frozen=True)
class Bound:
    """A region in which nothing is launched any more.

    Attributes:
        id: stable and readable: the rule, and the trial that taught it.
        rule: name of the diagnosis' rule.
        trial: number of the trial that taught it.
        verdict: how that trial ended.
        told: what happened to it, to follow "trial 4".
        remedy: what its diagnosis advised.
        limits: what must hold for the parameters that matter.
        rest: what must hold for all others.
        teacher: the deployment of the trial, `defaults` filled in.
        defaults: values in effect where a deployment leaves the parameter out, as far as launches
            told them.
        since: (number, attempt) after which a trial that worked contradicts the bound; before it,
            a passing fault of the machine had not yet begun.
    """

    id: str
    rule: str
    trial: int
    verdict: str
    told: str
    remedy: str
    limits: tuple[Limit, ...]
    rest: Rest
    teacher: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    since: tuple[int, int] = (-1, 0)

    def excludes(self, deployment: Mapping[str, Any]) -> str | None:
        """Why a canonical deployment is not worth a launch, None if the bound says nothing of it.

        A parameter that is left out is compared by its default where that is known, and only with
        another that is left out where it is not.
        """
        values = {**self.defaults, **deployment}
        inside = all(limit.holds(values.get(limit.parameter)) for limit in self.limits)
        return self.text if inside and self._rest_holds(values) else None

    @property
    def region(self) -> str:
        """The region in words and numbers."""
        shown = [self._said(limit) for limit in self.limits if self._is_worth_saying(limit)]
        said = " with ".join([shown[0], ", ".join(shown[1:])] if len(shown) > 1 else shown)
        if self.rest is Rest.ANY:
            return f"{said}, whatever else is set"
        if self.rest is Rest.FLAGS_SAME:
            return f"{said}, whatever else is set" + self._other_settings("free flags as in")
        if self.rest is Rest.RECIPE_SAME:
            return f"{said}, whatever else is set" + self._other_settings("recipe as in")
        return (f"{said}, " if said else "") + "everything else the same" + self._other_settings()

    @property
    def reason(self) -> str:
        """What the bound rests on."""
        return f"trial {self.trial} {self.told}"

    @property
    def text(self) -> str:
        """Region and reason in one line."""
        return f"{self.region}: {self.reason}"

    def _rest_holds(self, values: Mapping[str, Any]) -> bool:
        if self.rest is Rest.ANY:
            return True
        limited = {limit.parameter for limit in self.limits}
        # With other fields, a recipe's name stands for another checkpoint.
        of_recipe = "quantization" in limited
        return all(
            alike(self.teacher.get(name), values.get(name))
            for name in {*self.teacher, *values} - limited
            if self._matters(name) or (of_recipe and name.startswith(RECIPE_PREFIX))
        )

    def _matters(self, name: str) -> bool:
        """Whether a parameter that no limit names must be the same."""
        if self.rest is Rest.RECIPE_SAME:
            return name.startswith(RECIPE_PREFIX)
        return self.rest is Rest.SAME or is_free(name)

    def _said(self, limit: Limit) -> str:
        is_default = limit.value is not None and alike(
            limit.value, self.defaults.get(limit.parameter)
        )
        return f"{limit} (the default)" if is_default else str(limit)

    def _is_worth_saying(self, limit: Limit) -> bool:
        """Not what is true of every deployment, nor what "everything else the same" says."""
        if limit.relation is Relation.AT_MOST and limit.value == 1:
            return False
        left_out = limit.relation is Relation.SAME and limit.value is None
        return not (left_out and self.rest is Rest.SAME)

    def _other_settings(self, word: str = "") -> str:
        """What "the same" means where it is not the default."""
        limited = {limit.parameter for limit in self.limits}
        others = {
            name: value
            for name, value in sorted(self.teacher.items())
            if name not in limited and self._matters(name)
            if not (name in self.defaults and alike(value, self.defaults[name]))
        }
        if not others:
            return ""
        shown = " ".join(f"{name}={_plain(value)}" for name, value in others.items())
        return f" ({word} trial {self.trial}: {shown})" if word else f" ({shown})"


def alike(one: Any, other: Any) -> bool:
    """Equality of two values, either of which may be left out (None)."""
    if one is None or other is None:
        return one is other
    return same(one, other)


def is_number(value: Any) -> bool:
    """True for what can be compared by size; a switch cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compares(relation: Relation, value: float, limit: float) -> bool:
    close = same(value, limit)
    match relation:
        case Relation.AT_MOST:
            return value < limit or close
        case Relation.AT_LEAST:
            return value > limit or close
        case Relation.ABOVE:
            return value > limit and not close
        case Relation.NO_DIVISOR_OF:
            return value >= 1 and limit % value != 0
        case _:
            return limit >= 1 and value % limit != 0


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
