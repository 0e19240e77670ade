"""Help of every verb: what it does, usage, examples that compose, exit codes; at once."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from sweeper.config.compose import compose
from sweeper.config.fields import find
from sweeper.config.location import groups
from sweeper.config.overrides import read_overrides
from sweeper.verbs import VERBS, help_of, run, usage
from sweeper.verbs.completing.words import TAKES

WIDTH = 100
PROGRAM = "python -m sweeper"


def examples(text: str) -> list[list[str]]:
    """Command lines below `examples:`, without the program's name and what a shell adds."""
    block = text.partition("\nexamples:\n")[2].partition("\n\n")[0]
    found = []
    for line in block.splitlines():
        words = re.split(r"\s{2,}", line.strip())[0]
        match = re.search(r"(?:python -m sweeper|(?<!/)\bsweeper)(?= |$)([^|>)]*)", words)
        assert match is not None, line
        found.append(shlex.split(match.group(1)))
    return found


@cache
def composed(*overrides: str) -> None:
    """Compose a configuration, once for all tests: each takes some tenths of a second."""
    compose(list(overrides))


@pytest.mark.parametrize("verb", VERBS)
def test_help_says_what_it_must(verb: str) -> None:
    text = help_of(verb)
    assert not [line for line in text.splitlines() if len(line) > WIDTH]
    summary, _, rest = text.partition("\n\n")
    assert summary.endswith(".")
    assert rest.startswith(("usage: python -m sweeper", "usage: sweeper completion"))
    assert len(examples(text)) >= 2
    assert re.search(r"^exit codes: 0 .*\b2\b bad input", text, re.MULTILINE | re.DOTALL)
    assert text == text.strip()


@pytest.mark.parametrize("verb", VERBS)
def test_examples_compose(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Own keys of the verb are in its table; all others are settings of the configuration."""
    monkeypatch.chdir(tmp_path)
    for words in examples(help_of(verb)):
        named = words[0] if words and words[0] in VERBS else "sweep"
        assert named == verb
        arguments = words[1:] if words and words[0] in VERBS else words
        own = TAKES[verb]
        rest = [
            one
            for one in arguments
            if one not in own.words and one.partition("=")[0] not in {*own.keys, "study"}
        ]
        assert own.settings or not rest, f"{words}: {rest}"
        read_overrides(rest)
        if verb in {"sweep", "estimate"}:
            composed(*rest)


@pytest.mark.parametrize("verb", VERBS)
def test_usage_and_table_name_the_same_keys(verb: str) -> None:
    """What completion offers is what help tells, and the other way round."""
    text = help_of(verb)
    usage_lines = text.partition("usage:")[2].partition("\n\n")[0]
    told = set(re.findall(r"(?<![\w.])([a-z_]+)=", usage_lines))
    known = set(TAKES[verb].keys)
    settings = {key for key in told if key in groups() or find(key) is not None or key == "key"}
    assert told - settings <= known
    assert known - told <= {"studies_dir", "study"}


def test_every_verb_is_in_the_table_and_in_the_usage() -> None:
    assert set(TAKES) == set(VERBS)
    assert all(f"\n  {verb} " in usage() for verb in VERBS)
    assert not [line for line in usage().splitlines() if len(line) > WIDTH]


def test_examples_of_the_whole_command_compose() -> None:
    assert len(examples(usage())) >= 8
    for words in examples(usage()):
        if not words or words[0] not in VERBS:
            composed(*words)


@pytest.mark.parametrize("verb", VERBS)
def test_help_wins_over_every_other_argument(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "wrong", "--help"]) == 0
    assert capsys.readouterr().out.strip() == help_of(verb)


def test_help_needs_no_import_of_the_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("sweeper.verbs.importlib.import_module", broken)
    assert run(["sweep", "-h"]) == 0
