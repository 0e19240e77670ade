"""How each command of the docs is tried, and why so. What no way fits fails the test.

run        as typed, in this process, in a folder of its own; exit code 0
cheap      the same with settings appended, so that it takes a second: a study on the mock, a replay
opened     the study's configuration is restored with the command's settings and all checks; what
           would follow needs a server (MLflow, the engine the study was made with)
composed   configuration, space, engine and model are checked as at the start of a study, on a
           planted machine; what would follow needs a GPU, a hub or an engine
there      the program is another's: the target, module, option or file that is named exists
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sweeper.config.compose import compose
from sweeper.hardware import detect as detect_module
from sweeper.hardware.facts import HardwareFacts
from sweeper.verbs import VERBS
from sweeper.verbs.early import check_early
from sweeper.verbs.studies import open_study
from sweeper.verbs.tabled import filled
from tests.docs import desk
from tests.docs.blocks import ROOT, Command

STAND_INS = {
    "drop=ID": f"drop={desk.BOUND}",
    "restore=ID": f"restore={desk.BOUND}",
    "prune=KEY": "prune=all",
    "budget.launches=N": "budget.launches=40",
    "a=STUDY/TRIAL": "a=STUDY/0",
    "b=STUDY/TRIAL": "b=STUDY/1",
    "trial=N": "trial=1",
    "engine.options.group=MODEL/SYSTEM/ISLxOSL/BACKEND": "",
    "model.path=/models/mine": "model.path=FOLDER",
    "VERB": "pareto",
}
"""What the docs leave to the reader, and what stands for it here; empty leaves it out."""


@dataclass(frozen=True)
class Way:
    """One way, for the commands that `fits` says yes to."""

    name: str
    why: str
    fits: Callable[[list[str]], bool]
    carry_out: Callable[[list[str]], None]


def arguments_of(command: Command) -> list[str]:
    """The command's arguments, with something in the place of what is the reader's."""
    given = [STAND_INS.get(argument, argument) for argument in command.arguments]
    return [argument for argument in given if argument]


def verb_of(arguments: list[str]) -> str:
    """The verb; a study is run where none is written."""
    return arguments[0] if arguments and arguments[0] in VERBS else "sweep"


def is_verb(*verbs: str) -> Callable[[list[str]], bool]:
    return lambda arguments: verb_of(arguments) in verbs


def has(*wanted: str) -> Callable[[list[str]], bool]:
    return lambda arguments: set(wanted) <= set(arguments)


def run(arguments: list[str], *more: str) -> None:
    answer = desk.run([*arguments, *more])
    assert answer.code == 0, f"exit code {answer.code}\n{answer.out[-2000:]}\n{answer.err[-2000:]}"
    assert "Traceback" not in answer.err


def run_cheaply(*more: str) -> Callable[[list[str]], None]:
    return lambda arguments: run(arguments, *more)


def opened(arguments: list[str]) -> None:
    assert open_study(arguments[1:]).outcomes


def exported(arguments: list[str]) -> None:
    """The files, without starting what they describe."""
    run([one for one in arguments if not one.startswith("verify=")])


def composed(arguments: list[str], machine: HardwareFacts = desk.CPU) -> None:
    """What `sweeper.verbs.sweep` does before anything is started or an installation is asked."""
    before = detect_module.detect
    detect_module.detect = lambda: machine
    try:
        check_early(filled(compose(arguments, device_kind=machine.kind)))
    finally:
        detect_module.detect = before


def composed_on_gpus(arguments: list[str]) -> None:
    composed(arguments, desk.GPU)


def examined(arguments: list[str]) -> None:
    """`doctor` looks at this very machine, which may be ill."""
    own = ("deep=", "limit_s=", "format=")
    compose([one for one in arguments[1:] if not one.startswith(own)])


def is_on_gpus(arguments: list[str]) -> bool:
    return any(re.match(r"model(\.path)?=\w*(7b|8b|32b|70b|mine|FOLDER)", one) for one in arguments)


QUICK = (
    "+engine.options.start_s=0", "+engine.options.compile_s=0",
    "tracking=none", "workload.input_tokens=16", "workload.output_tokens=8",
    "load.concurrency=[1,4]", "load.requests_per_stream=2", "quality.max_prompts=3",
    "quality.reference_tokens=8", "sampler=tpe", "confirm=none",
)  # fmt: skip
WAYS = (
    Way("run", "help starts nothing", lambda a: bool({"--help", "-h"} & set(a)), run),
    Way("run", "a version starts nothing", has("--version"), run),
    Way("run", "prints the configuration", has("--cfg"), run),
    Way(
        "cheap", "verify= starts vLLM, see tests/e2e; without it the files are written",
        lambda a: verb_of(a) == "export" and any(one.startswith("verify=") for one in a), exported,
    ),
    Way(
        "run", "it looks at a finished study, or at files",
        is_verb("status", "pareto", "export", "compare", "diagnose", "bounds", "estimate"), run,
    ),
    Way("run", "it prints a script", is_verb("completion"), run),
    Way("run", "the cache is the test's own, and empty", is_verb("checkpoints"), run),
    Way("opened", "needs MLflow, see tests/verbs/test_sync_verb.py", is_verb("sync"), opened),
    Way("opened", "the study was made on a real engine", is_verb("resume"), opened),
    Way("composed", "looks at this machine, see tests/doctor", is_verb("doctor"), examined),
    Way(
        "cheap", "the mock answers in milliseconds", has("engine=mock"),
        run_cheaply(*QUICK, "budget.launches=2"),
    ),
    Way(
        "cheap", "a table answers at once",
        lambda a: "engine=replay" in a and "engine.table=studies/NAME" in a,
        run_cheaply("tracking=none", "budget.launches=3", "study=replayed"),
    ),
    Way("composed", "needs a GPU", lambda a: verb_of(a) == "sweep" and is_on_gpus(a),
        composed_on_gpus),
    Way("composed", "needs an engine, minutes or a hub", is_verb("sweep"), composed),
)  # fmt: skip


def way_of(arguments: list[str]) -> Way | None:
    """The first way that fits, None if none does."""
    return next((way for way in WAYS if way.fits(arguments)), None)


def of_make(words: list[str]) -> None:
    target, settings = words[1], dict(word.split("=", 1) for word in words[2:] if "=" in word)
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"no target {target}"
    for name in settings:
        assert f"$({name})" in makefile, f"the Makefile does not use {name}"
    if target == "sweep" and settings.get("ARGS"):
        composed(shlex.split(settings["ARGS"]))


def of_module(words: list[str]) -> None:
    """`python -m benchmarks.x --option`: the module is there and knows the option."""
    name = words[2]
    places = [ROOT / Path(*name.split(".")).with_suffix(".py"), ROOT / Path(*name.split("."), "x")]
    assert places[0].is_file() or places[1].parent.is_dir(), f"no module {name}"
    options = [word.partition("=")[0] for word in words[3:] if word.startswith("--")]
    text = "".join(path.read_text() for path in (ROOT / name.split(".")[0]).rglob("*.py"))
    for option in options:
        assert f'"{option}"' in text, f"nothing in {name.split('.')[0]} takes {option}"


def of_pytest(words: list[str]) -> None:
    for word in words[3:]:
        if word.startswith("tests/") and "ROOM" not in word:
            assert (ROOT / word).exists()


def of_completion(words: list[str]) -> None:
    """`source <(sweeper completion bash)`: a script comes out."""
    inner = " ".join(words).partition("<(")[2].rstrip(")")
    run(shlex.split(inner)[1:])


def of_pip(words: list[str]) -> None:
    """What is installed by hand is one of the project's own extras."""
    declared = (ROOT / "pyproject.toml").read_text()
    for word in words[4:]:
        name = re.split(r"[<>=\[]", word)[0]
        assert name.startswith("-") or f'"{name}' in declared, f"pyproject.toml has no {name}"


def of_another_program(words: list[str]) -> None:
    """Files of a study that it is given are those that a study or an export leaves."""
    for word in words[1:]:
        path = word.partition("=")[2] or word
        if path.startswith("studies/") and "*" not in path:
            assert Path(path).exists() or (ROOT / path).exists(), f"{path} does not come about"


OTHERS: tuple[tuple[str, Callable[[list[str]], None], str], ...] = (
    (r"make [a-z-]+", of_make, "takes minutes; its target and settings exist"),
    (r"\S*python -m pytest", of_pytest, "is the test run itself"),
    (r"\S*python -m (benchmarks|tests)\.", of_module, "takes minutes; module and options exist"),
    (r"source <\(sweeper ", of_completion, "bash would read it; sweeper writes it"),
    (r"\S*python -m pip install ", of_pip, "changes the environment; the package is declared"),
    (r"\S*optuna-dashboard ", of_another_program, "a server; the file that it opens is there"),
    (r"sh studies/", of_another_program, "starts vLLM; the script is there"),
    (r"curl http://127\.0\.0\.1:", of_another_program, "asks the server that was started"),
)
"""Pattern of a command that is not ours → how it is looked at, why so."""
