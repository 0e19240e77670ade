"""Candidates for the last word of a half-typed command line.

    sweeper pareto study=exa|        the line up to the cursor
            └verb┘ └key┘└value┘

What is offered stands in the folders `conf/` and `studies/` and in the schema; no study is opened,
and neither Hydra nor YAML is imported, so that an answer takes a fraction of a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sweeper.config.fields import Field, find, leaf_keys
from sweeper.config.location import groups, options
from sweeper.verbs.completing.words import BOOLEAN, TAKES, Source, Takes

DEFAULT_VERB = "sweep"
HELP = "--help"
_PATHS = (".path", ".table", ".python", "_dir", ".base_url")


def candidates(line: str, verbs: Sequence[str]) -> list[str]:
    """Whole words that may stand for the last one of `line`, sorted.

    Args:
        line: what was typed up to the cursor, the program's name first.
        verbs: names of all verbs.
    """
    before, word = split(line)
    arguments = before[1:]
    verb = arguments[0] if arguments and arguments[0] in verbs else None
    takes = TAKES.get(verb or DEFAULT_VERB, Takes())
    found = list(_after(word, arguments, takes))
    if not arguments:
        found += [*verbs, "--version", HELP]
    elif HELP not in arguments:
        found.append(HELP)
    return sorted({one for one in found if one.startswith(word)})


def split(line: str) -> tuple[list[str], str]:
    """The words before the last, and the last, which is empty after a blank.

    Quotes hold a word together, also one that is not closed yet; they are left out of it.
    """
    words, word, quote, inside = [], "", "", False
    for character in line:
        if quote:
            quote, word = ("", word) if character == quote else (quote, word + character)
        elif character in "'\"":
            quote, inside = character, True
        elif character.isspace():
            if word or inside:
                words.append(word)
            word, inside = "", False
        else:
            word += character
    return words, word


def _after(word: str, arguments: Sequence[str], takes: Takes) -> Iterator[str]:
    """Keys, or the values of a key that is written out."""
    key, equals, value = word.partition("=")
    if equals:
        yield from (f"{key}={one}" for one in _values(key, value, arguments, takes))
        return
    yield from takes.words
    yield from (f"{name}=" for name in takes.keys)
    if takes.settings:
        yield from _keys(word, takes.settings)


def _keys(word: str, settings: Sequence[str]) -> Iterator[str]:
    """Keys of the configuration, one level at a time: all of them at once are a wall of text."""
    chosen = groups()
    for name in chosen:
        if any(name.startswith(start) for start in settings):
            yield f"{name}="
    depth = word.count(".")
    for key in leaf_keys():
        parts = key.split(".")
        if not any(key.startswith(start) for start in settings):
            continue
        if len(parts) <= depth + 1:
            yield f"{key}{'.' if _is_open(key) else '='}"
        else:
            yield ".".join(parts[: depth + 1]) + "."


def _is_open(key: str) -> bool:
    field = find(key)
    return field is not None and field.kind == "open"


def _values(
    key: str, value: str, arguments: Sequence[str], takes: Takes
) -> Sequence[str] | Iterator[str]:
    """Values of a key; none where the shell's own completion of paths is to follow."""
    own = takes.keys.get(key)
    if own is not None:
        return _of_source(own, value, arguments) if isinstance(own, Source) else own
    if not any(key.startswith(start) for start in takes.settings):
        return ()
    if key in groups():
        return options(key)
    return _of_setting(key)


def _of_source(source: Source, value: str, arguments: Sequence[str]) -> list[str]:
    folder = _studies(arguments)
    if source is Source.STUDY:
        return _names(folder)
    if source is Source.TRIAL:
        return _trials(folder / _given("study", arguments, ""))
    if source is Source.SIDE:
        name, slash, _ = value.partition("/")
        return [f"{name}/{n}" for n in _trials(folder / name)] if slash else _sides(folder)
    if source is Source.TARGET:
        from sweeper.export.registry import TARGETS

        return ["all", *TARGETS]
    return []


def _of_setting(key: str) -> Sequence[str]:
    """Values of one setting: a closed list, true or false, or none that are known."""
    from sweeper.config.checks import CHOICES

    if key in CHOICES:
        return CHOICES[key]
    field = find(key)
    if field is None or key.endswith(_PATHS):
        return ()
    return (*BOOLEAN,) if field.annotation is bool else _null(field)


def _null(field: Field) -> Sequence[str]:
    return ("null",) if field.takes.endswith("or null") else ()


def _given(key: str, arguments: Sequence[str], default: str) -> str:
    """The value that a key was given earlier on the line."""
    found = [text.partition("=")[2] for text in arguments if text.partition("=")[0] == key]
    return found[-1] if found else default


def _studies(arguments: Sequence[str]) -> Path:
    return Path(_given("studies_dir", arguments, "studies")).expanduser()


def _names(folder: Path) -> list[str]:
    try:
        return [path.parent.name for path in folder.glob("*/study.yaml")]
    except OSError:
        return []


def _sides(folder: Path) -> list[str]:
    return [text for name in _names(folder) for text in (name, f"{name}/")]


def _trials(study: Path) -> list[str]:
    try:
        return [path.name for path in (study / "trials").iterdir() if path.name.isdigit()]
    except OSError:
        return []
