"""Every command of README and docs is tried: see `tests.docs.ways` for how, and why so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.docs import ways
from tests.docs.blocks import PAGES, Command, commands_of

ALL = [command for page in PAGES for command in commands_of(page)]
OURS = {command.text: command for command in reversed(ALL) if command.is_ours}
OTHERS = {command.text: command for command in reversed(ALL) if not command.is_ours}


@pytest.mark.parametrize("command", OURS.values(), ids=lambda command: command.where)
def test_a_command_does_what_the_page_says(command: Command, desk: Path) -> None:
    arguments = ways.arguments_of(command)
    way = ways.way_of(arguments)
    assert way is not None, f"{command.where}: nothing in tests/docs/ways.py fits {command.text}"
    try:
        way.carry_out(arguments)
    except Exception as problem:
        problem.add_note(f"{command.where} ({way.name}): {command.text}")
        raise


@pytest.mark.parametrize("command", OTHERS.values(), ids=lambda command: command.where)
def test_another_programs_command_names_what_exists(command: Command, desk: Path) -> None:
    text = command.text.removeprefix("$ ")
    found = next((look for pattern, look, _ in ways.OTHERS if re.match(pattern, text)), None)
    assert found is not None, f"{command.where}: nothing in tests/docs/ways.py fits {text}"
    found(shlex.split(text, comments=True))


def test_a_command_that_fits_nothing_is_found() -> None:
    assert ways.way_of(["frobnicate", "study=NAME"]) is ways.WAYS[-1]  # refused when composed
    with pytest.raises(Exception, match="frobnicate"):
        ways.composed(["frobnicate", "study=NAME"])
    assert not any(re.match(pattern, "rm -r studies") for pattern, *_ in ways.OTHERS)


@pytest.mark.parametrize(
    "wrong", ["budget.lanches=3", "sampler=annealing", "engine=mok", "load.concurrency=many"]
)
def test_a_wrong_setting_in_the_docs_would_be_found(desk: Path, wrong: str) -> None:
    with pytest.raises(Exception, match=re.escape(wrong.partition("=")[0].split(".")[-1])):
        ways.composed([wrong])
