"""Explain an engine's log: verdict, phase, cause, remedy and what was learnt.

usage: python -m sweeper diagnose log=FILE [engine=vllm] [format=text|json]

FILE is the log of any server, from this tool or not, of any size; `-` is standard input, and a
trial's folder stands for the server.log in it. The phase is read from the log. A log without a
failure has verdict OK if the server was ready, and UNKNOWN if it ends before that.

examples:
  python -m sweeper diagnose log=studies/NAME/trials/3
  python -m sweeper diagnose log=server.log format=json
  kubectl logs my-pod | python -m sweeper diagnose log=- engine=vllm

exit codes: 0 diagnosed, whatever the verdict; 2 bad input
"""

from __future__ import annotations

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
_HEAD_CHARS = 4096
_ODD_SHARE = 0.05


def run(arguments: list[str]) -> int:
    """Print the diagnosis of one log; 0 whatever it says."""
    form, rest = choice(arguments, "format", ["text", "json"])
    name, rest = take(rest, "log")
    if not name:
        bare = next((word for word in rest if "=" not in word and Path(word).exists()), "FILE")
        raise ConfigError(
            "which log? log=FILE is missing",
            f"python -m sweeper diagnose log={bare}, or log=- for standard input",
        )
    text = read(name)
    if _is_binary(text[:_HEAD_CHARS]):
        raise ConfigError(f"log={name} is no text", "give the path of a log file")
    cfg = compose(rest)
    engine = create(cfg.engine, cache_dir=cache_dir(cfg))
    found = explain(text, engine.diagnose, NO_CAUSE)
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


def _is_binary(head: str) -> bool:
    """Whether a beginning is no text. Zeros are none of its marks: a log that was rotated while its
    server wrote begins with them."""
    odd = sum(character < " " and character not in "\0\t\n\r\f\x1b" for character in head)
    return odd > _ODD_SHARE * len(head)


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
