"""What a broken rule looks like."""

from __future__ import annotations

from dataclasses import dataclass

Finding = tuple[str, str, tuple[str, ...]]
"""(cause, remedy, parameters involved), what a rule function returns."""


@dataclass(frozen=True)
class Violation:
    """A rule that a deployment breaks.

    Attributes:
        rule: the rule's name.
        cause: the arithmetic, one line with the numbers in it.
        remedy: what to change.
        parameters: the parameters involved; if it is only one, that value can never work here.
    """

    rule: str
    cause: str
    remedy: str
    parameters: tuple[str, ...]
