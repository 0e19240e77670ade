"""Explain an engine's log: verdict, phase, cause, remedy and what was learnt.

usage: python -m sweeper diagnose log=FILE [engine=vllm] [format=text|json]

FILE is the log of any server, from this tool or not, of any size; `-` is standard input, and a
trial's folder stands for the server.log in it. The phase is read from the log. A log without a
failure has verdict OK if the server was ready, and UNKNOWN if it ends before that.
"""

from __future__ import annotations

import io
import json
import sys
from dataclasses import asdict
from pathlib import Path

from sweeper.config.compose import compose
from sweeper.engine.diagnosis import NO_CAUSE
from sweeper.engine.log_file import condense
from sweeper.engine.log_life import explain
from sweeper.engine.registry import create
from sweeper.errors import ConfigError
from sweeper.models.cache import cache_dir
from sweeper.redaction import redact_data, shown
from sweeper.verbs.studies import choice, take
from sweeper.verdicts import Diagnosis

STANDARD_INPUT = "-"
SERVER_LOG = "server.log"


def run(arguments: list[str]) -> int:
    """Print the diagnosis of one log; 0 whatever it says."""
    form, rest = choice(arguments, "format", ["text", "json"])
    name, rest = take(rest, "log")
    if not name:
        raise ConfigError(
            "which log? log=FILE is missing",
            "python -m sweeper diagnose log=FILE, or log=- for standard input",
        )
    text = read(name)
    cfg = compose(rest)
    engine = create(cfg.engine, cache_dir=cache_dir(cfg))
    found = explain(text, engine.diagnose, NO_CAUSE)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A log may hold characters that the terminal's encoding does not have.
        sys.stdout.reconfigure(errors="replace")
    print(as_json(found) if form == "json" else shown(as_text(found)))
    return 0


def read(name: str) -> str:
    """The text of a log by its path, `-` for standard input; bounded in size.

    Raises:
        ConfigError: it cannot be read.
    """
    if name == STANDARD_INPUT:
        return condense(sys.stdin.buffer)
    path = Path(name)
    try:
        if path.is_dir():
            path /= SERVER_LOG
        with path.open("rb") as file:
            return condense(file)
    except FileNotFoundError as error:
        where = f"is a folder without a {SERVER_LOG}" if path.name == SERVER_LOG else "is not there"
        raise ConfigError(f"log={name} {where}", "give the path of a log file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"log={name} cannot be read: {reason}", "give the path of a log file"
        ) from error


def as_json(found: Diagnosis) -> str:
    """All of a diagnosis as one JSON object, in ASCII."""
    plain = redact_data({**asdict(found), "learnt": dict(found.learnt)})
    return json.dumps(plain, indent=2)


def as_text(found: Diagnosis) -> str:
    """A diagnosis for the eye, one fact a line and the evidence below."""
    said = [
        f"verdict  {found.verdict}",
        f"phase    {found.phase}",
        f"cause    {found.cause}",
        f"remedy   {found.remedy}",
        *(f"learnt   {key} = {value}" for key, value in found.learnt.items()),
    ]
    if found.evidence:
        said += ["evidence", *(f"  | {line}" for line in found.evidence.splitlines())]
    return "\n".join(said)
