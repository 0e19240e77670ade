"""What a study may send its engine, held against the flags that the installed engine has. Pure.

A flag that the engine does not know costs a launch to find out, and it is the same launch every
time: so everything is held against the engine's own list before the first one.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

SWITCH, BOOLEAN, VALUE, LIST, OPTIONAL = "switch", "boolean", "value", "list", "optional"
"""Kinds of a flag: ``--x``; ``--x`` and ``--no-x``; ``--x V``; ``--x V V``; ``--x [V]``."""

FLAG_PREFIX, ENV_PREFIX = "flag.", "env."
MAX_LISTED = 16


@dataclass(frozen=True)
class Flag:
    """One flag of an engine.

    Attributes:
        name: underscored, without dashes in front.
        aliases: further long names, underscored; each is as good as the name.
        short: names with one dash, such as ``tp``; not to be used for a setting.
        kind: see the constants of this module.
        choices: the values it takes, as text; empty if the engine names none, or takes others too.
        any_case: whether choices are compared without case.
        without_effect: the engine says of it that it does nothing any more.
    """

    name: str
    aliases: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    kind: str = VALUE
    choices: tuple[str, ...] = ()
    any_case: bool = False
    without_effect: bool = False


@dataclass(frozen=True)
class KnownFlags:
    """All flags of an engine.

    Attributes:
        engine: name and version for messages, ``vLLM 0.32.0``.
        flags: in the engine's order.
        command_line: False if they are arguments of a function instead, which has neither
            ``no_x`` nor ``x.key``.
    """

    engine: str
    flags: tuple[Flag, ...]
    command_line: bool = True

    def find(self, name: str) -> Flag | None:
        """The flag of this underscored long name."""
        return self._by_name.get(name)

    def of_short(self, name: str) -> Flag | None:
        """The flag that has `name` with one dash: ``tp`` is `tensor_parallel_size`."""
        return next((flag for flag in self.flags if name in flag.short), None)

    @property
    def names(self) -> list[str]:
        """All long names."""
        return list(self._by_name)

    @cached_property
    def _by_name(self) -> dict[str, Flag]:
        return {name: flag for flag in self.flags for name in (flag.name, *flag.aliases)}


@dataclass(frozen=True)
class AskedFlag:
    """One value that a study may send.

    Attributes:
        key: where it stands in the configuration, ``engine.args.block_size``.
        parameter: name in a deployment, ``block_size`` or ``flag.load_format``.
        value: as configured.
        optional: one choice of a searched parameter among others; without it the study goes on.
    """

    key: str
    parameter: str
    value: Any
    optional: bool = False

    @property
    def name(self) -> str:
        """The flag's name, underscored."""
        return self.parameter.removeprefix(FLAG_PREFIX).lstrip("-").replace("-", "_")


@dataclass(frozen=True)
class Problem:
    """Why something cannot be sent; `unknown` if the flag is not there, whatever its value."""

    cause: str
    remedy: str
    unknown: bool = False


@dataclass(frozen=True)
class Refusal:
    """An asked flag that the installed engine refuses."""

    asked: AskedFlag
    problem: Problem

    @property
    def ends_study(self) -> bool:
        """False if it is enough to leave one choice of the space out."""
        return self.problem.unknown or not self.asked.optional


@dataclass(frozen=True)
class Rename:
    """A word of the study that the installed engine knows by another name.

    Attributes:
        parameter: name of the flag, underscored.
        asked: the study's word.
        given: what the engine is sent for it.
        online: only where weights are quantized while loading: a checkpoint that is quantized
            already keeps the word.
    """

    parameter: str
    asked: str
    given: str
    online: bool = False


@dataclass(frozen=True)
class FlagCheck:
    """What came of holding a study against its engine.

    Attributes:
        refusals: in the order asked, one for a flag that is not there.
        renames: words that the engine is sent under another name.
        notes: what the user should hear, one line each.
    """

    refusals: tuple[Refusal, ...] = ()
    renames: tuple[Rename, ...] = ()
    notes: tuple[str, ...] = field(default=())


def find_problem(
    name: str, value: Any, known: KnownFlags, removed: Mapping[str, Problem] | None = None
) -> Problem | None:
    """Why the engine would refuse a flag, None if nothing speaks against it.

    Args:
        name: of the flag, underscored; ``name.key`` is an entry of a JSON flag.
        value: what it is given.
        known: the engine's flags.
        removed: what to say of flags that the engine had once.
    """
    base = name.partition(".")[0].removesuffix("+") if known.command_line else name
    flag, negated = _look_up(base, known)
    if flag is None:
        return (removed or {}).get(base) or _unknown(base, known)
    if base != name:
        return None
    if negated:
        if value is True:
            return None
        form = f"write {flag.name}: {'true' if value is False else 'false'} instead"
        return Problem(f"--{dashed(name)} takes no value", form)
    return _wrong_form(flag, value) or _wrong_choice(flag, value, known)


def dashed(name: str) -> str:
    """A flag's name as on a command line."""
    return name.replace("_", "-")


def as_text(value: Any) -> str:
    """A value as an engine reads it from its command line."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def nearest_of(word: str, words: Sequence[str]) -> str:
    """``did you mean X?``, or what there is."""
    near = difflib.get_close_matches(word, words, n=1)
    if near:
        return f"did you mean {near[0]}?"
    listed = ", ".join(words[:MAX_LISTED]) + (", ..." if len(words) > MAX_LISTED else "")
    return f"it has: {listed}"


def _look_up(name: str, known: KnownFlags) -> tuple[Flag | None, bool]:
    """The flag, and whether `name` is its negative form."""
    flag = known.find(name)
    if flag is not None or not name.startswith("no_") or not known.command_line:
        return flag, False
    positive = known.find(name.removeprefix("no_"))
    is_boolean = positive is not None and positive.kind == BOOLEAN
    return (positive, True) if is_boolean else (None, False)


def _unknown(name: str, known: KnownFlags) -> Problem:
    cause = f"{known.engine} has no flag --{dashed(name)}"
    of_short = known.of_short(name)
    if of_short is not None:
        return Problem(cause, f"did you mean {of_short.name}?", unknown=True)
    near = difflib.get_close_matches(name, known.names, n=1)
    remedy = f"did you mean {near[0]}?" if near else "leave it out"
    return Problem(cause, remedy, unknown=True)


def _wrong_form(flag: Flag, value: Any) -> Problem | None:
    option = f"--{dashed(flag.name)}"
    if flag.kind == BOOLEAN and not isinstance(value, bool):
        return Problem(f"{option} takes true or false, not {value!r}", "write true or false")
    if flag.kind == SWITCH and value is not True:
        return Problem(
            f"{option} can only be given or left out, not set to {value!r}",
            "leave it out" if value is False else "write true",
        )
    if isinstance(value, bool) and flag.kind in (VALUE, LIST):
        return Problem(f"{option} needs a value, not {str(value).lower()}", "give it a value")
    if value is False and flag.kind == OPTIONAL:
        return Problem(f"{option} cannot be set to false", "leave it out")
    return None


def _wrong_choice(flag: Flag, value: Any, known: KnownFlags) -> Problem | None:
    if not flag.choices or isinstance(value, Mapping):
        return None
    fold = str.casefold if flag.any_case else str
    allowed = {fold(choice) for choice in flag.choices}
    for item in value if isinstance(value, list | tuple) else [value]:
        if fold(as_text(item)) not in allowed:
            return Problem(
                f"{known.engine} has no {flag.name}={as_text(item)}",
                nearest_of(as_text(item), flag.choices),
            )
    return None
