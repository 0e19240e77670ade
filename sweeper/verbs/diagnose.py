"""Explain an engine's log: verdict, phase, cause, remedy and what was learnt.

usage: python -m sweeper diagnose log=FILE [engine=vllm] [format=text|json]
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from sweeper.config.compose import compose
from sweeper.engine.registry import create
from sweeper.errors import ConfigError
from sweeper.models.cache import cache_dir
from sweeper.verbs.studies import choice, take
from sweeper.verdicts import Phase


def run(arguments: list[str]) -> int:
    """Print the diagnosis of one log file."""
    form, rest = choice(arguments, "format", ["text", "json"])
    name, rest = take(rest, "log")
    if not name:
        raise ConfigError("which log? log=FILE is missing", "python -m sweeper diagnose log=FILE")
    try:
        text = Path(name).read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(
            f"log={name} cannot be read: {error.strerror}", "give the path of a log file"
        ) from error
    cfg = compose(rest)
    engine = create(cfg.engine, cache_dir=cache_dir(cfg))
    found = engine.diagnose(text, Phase.START, None)
    if form == "json":
        print(json.dumps({**asdict(found), "learnt": dict(found.learnt)}, indent=2))
    else:
        print(f"verdict  {found.verdict}\nphase    {found.phase}\ncause    {found.cause}")
        print(f"remedy   {found.remedy}")
        for key, value in found.learnt.items():
            print(f"learnt   {key} = {value}")
    return 0
