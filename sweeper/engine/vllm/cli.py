"""vLLM's flags, read from the text of its ``--help``. Pure.

The layout is argparse's, of all Python versions, with vLLM's own metavars:

    --max-num-seqs MAX_NUM_SEQS          a value
    --dtype {auto,half}                  one of these
    --tokenizer-mode ['auto', 'hf']      one of these, or any other
    --enforce-eager, --no-enforce-eager  true or false
    --headless                           given or left out
    --api-key API_KEY [API_KEY ...]      one or more values
    --quantization {awq,gptq}, -q {awq,gptq}
    -q, --quantization {awq,gptq}        the same, Python 3.13 and later
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sweeper.engine.flag_check import BOOLEAN, LIST, OPTIONAL, SWITCH, VALUE, Flag

ALWAYS_THERE = ("model", "tensor_parallel_size", "max_model_len")
"""Flags of every vLLM: a text without them is not its help."""

_ENTRY = re.compile(r"^ {2}(--?[A-Za-z].*)$")
_HELP_BEGINS = re.compile(r" {2,}")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CHOICES = re.compile(r"\{([^{}]*)\}")
_OPENING, _CLOSING = "{[(", "}])"
_NO_EFFECT = re.compile(r"deprecated and (?:has|will have) no effect")


def parse_help(text: str) -> tuple[Flag, ...]:
    """All flags of a help text, in its order; empty if it is none.

    Args:
        text: of ``--help=all``, or of ``--help`` where that lists every flag. Other lines may stand
            around and between.
    """
    found: dict[str, Flag] = {}
    for entry, explained in _entries(_COLOUR.sub("", text)):
        flag = _flag(entry, explained)
        if flag is not None:
            found.setdefault(flag.name, flag)
    return tuple(found.values())


def is_whole(flags: tuple[Flag, ...]) -> bool:
    """False for the short help that newer versions give, which lists groups instead of flags."""
    names = {flag.name for flag in flags}
    return all(name in names for name in ALWAYS_THERE)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """(flags and metavars, explanation) of every entry."""
    entry: str | None = None
    explained: list[str] = []
    for line in text.splitlines():
        match = _ENTRY.match(line.rstrip())
        if match is not None:
            if entry is not None:
                yield entry, " ".join(explained)
            entry, *rest = _HELP_BEGINS.split(match.group(1), maxsplit=1)
            explained = rest
        elif entry is not None and line.startswith("    "):
            explained.append(line.strip())
    if entry is not None:
        yield entry, " ".join(explained)


def _flag(entry: str, explained: str) -> Flag | None:
    options: list[str] = []
    metavar = ""
    for part in _split(entry):
        option, _, rest = part.partition(" ")
        options.append(option)
        metavar = metavar or rest.strip()
    long = [_name(option) for option in options if option.startswith("--")]
    names = [name for name in long if not _is_negative(name, long)]
    if not names:
        return None
    return Flag(
        name=names[0],
        aliases=tuple(names[1:]),
        short=tuple(_name(option) for option in options if not option.startswith("--")),
        kind=BOOLEAN if len(names) < len(long) else _kind(metavar),
        choices=_choices(metavar),
        without_effect=_NO_EFFECT.search(explained) is not None,
    )


def _split(entry: str) -> Iterator[str]:
    """Parts between the commas that stand outside brackets."""
    depth, start = 0, 0
    for index, sign in enumerate(entry):
        if sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        elif sign == "," and depth == 0:
            yield entry[start:index].strip()
            start = index + 1
    yield entry[start:].strip()


def _name(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _is_negative(name: str, long: list[str]) -> bool:
    return name.startswith("no_") and name.removeprefix("no_") in long


def _kind(metavar: str) -> str:
    if not metavar:
        return SWITCH
    if metavar.endswith("...]"):
        return LIST
    if metavar.startswith("[") and not metavar.startswith("['"):
        return OPTIONAL
    return VALUE


def _choices(metavar: str) -> tuple[str, ...]:
    """The values a flag is held to; none where others are taken too (``{a,b} or a name``)."""
    match = _CHOICES.match(metavar)
    if match is None:
        return ()
    rest = metavar[match.end() :].strip()
    if rest and not rest.startswith("["):
        return ()
    return tuple(word.strip() for word in match.group(1).split(","))
