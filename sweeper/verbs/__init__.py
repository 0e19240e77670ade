"""The command line: one small module a verb, imported only when it is asked for."""

from __future__ import annotations

import ast
import difflib
import importlib
from collections.abc import Callable
from pathlib import Path

from sweeper.config.location import groups
from sweeper.errors import UserError

VERBS: dict[str, str] = {
    "sweep": "run (or continue) a study; the default",
    "resume": "continue a study with the configuration it was started with",
    "status": "who runs a study, what it does now, what it has found; or a list of all studies",
    "bounds": "what failed launches taught a study; drop or restore it",
    "pareto": "the Pareto front and the recommendation, under an SLO if one is given",
    "export": "write deployment files for the recommendation, or for one trial",
    "compare": "two trials, studies or foreign results: conditions, results, is it fair",
    "estimate": "memory and rules for a model and a machine, without launching anything",
    "diagnose": "verdict, cause and remedy of an engine's log",
    "checkpoints": "quantized checkpoints made on this machine: list, check, remove",
    "doctor": "is this machine ready for a study, and how to mend what is not",
    "sync": "bring MLflow up to date with a study's journal",
    "completion": "a script that makes bash, zsh or fish complete the command `sweeper`",
}

USAGE = """\
sweeper: optimization sweep and autotuning for LLM serving

usage: python -m sweeper [verb] [key=value ...]

verbs:
{verbs}

examples:
  python -m sweeper doctor                           what this machine lacks, and how to mend it
  python -m sweeper                                  SmolLM2-135M on this machine, no download
  python -m sweeper model=qwen7b                     Qwen2.5-7B-Instruct on the GPUs of this machine
  python -m sweeper model.path=/models/mine study=mine budget.launches=12
  python -m sweeper model=qwen7b objective=slo select.slo.ttft_p95_ms=500
  python -m sweeper status                           all studies here; study=NAME tells of one
  python -m sweeper pareto study=NAME select.slo.e2e_p95_ms=2000 format=json
  python -m sweeper export study=NAME
  python -m sweeper compare a=NAME/0 b=NAME/3
  python -m sweeper estimate model=qwen7b hardware=h100_80gb

Settings are Hydra overrides over the folder conf/; a group also takes a YAML file of your own
(space=my_space.yaml). `python -m sweeper VERB --help` explains a verb, `python -m sweeper --cfg`
prints the composed configuration.

exit codes: 0 done, 1 no feasible trial or failed, 2 bad input, 130 interrupted (resume goes on)
"""


def run(arguments: list[str]) -> int:
    """Find the verb and run it.

    Args:
        arguments: command line without the program's name.

    Returns:
        The exit code.

    Raises:
        UserError: unknown verb or option.
    """
    if arguments and arguments[0] in {"-h", "--help", "help"}:
        print(usage())
        return 0
    if arguments and arguments[0] == "--version":
        from sweeper import __version__

        print(__version__)
        return 0
    verb, rest = _split(arguments)
    if any(argument in {"-h", "--help"} for argument in _before_text(rest)):
        print(help_of(verb))
        return 0
    module = importlib.import_module(f"sweeper.verbs.{verb}")
    command: Callable[[list[str]], int] = module.run
    return command(rest)


def help_of(verb: str) -> str:
    """What a verb's module says of itself.

    Read, not imported: help is wanted most where an import fails, and at once in any case.
    """
    source = Path(__file__).with_name(f"{verb}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").strip()


def _before_text(arguments: list[str]) -> list[str]:
    """Arguments up to `--`, behind which stands text that is not read as options."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def usage() -> str:
    """Help for the whole command."""
    width = max(map(len, VERBS))
    return USAGE.format(
        verbs="\n".join(f"  {name:<{width}}  {text}" for name, text in VERBS.items())
    )


def _split(arguments: list[str]) -> tuple[str, list[str]]:
    """(verb, its arguments); without a verb the command is `sweep`."""
    if not arguments or "=" in arguments[0] or arguments[0].startswith(("-", "+", "~")):
        return "sweep", arguments
    verb = arguments[0]
    if verb in VERBS:
        return verb, arguments[1:]
    near = difflib.get_close_matches(verb.lower(), VERBS, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    if verb in groups():
        hint = f"did you mean {verb}={' '.join(arguments[1:2]) or 'OPTION'}? "
    raise UserError(
        f"unknown verb `{verb}`",
        f"{hint}verbs are {', '.join(VERBS)}; settings are written key=value",
    )
