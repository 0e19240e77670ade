"""Say whether this machine is ready for a study, and how to mend what is not.

usage: python -m sweeper doctor [model=NAME] [engine=NAME] [deep=true|false] [limit_s=10]
                                [format=table|json] [key=value ...]

Looks at the interpreter and its packages, processor, memory, GPUs and their driver, the engine and
its torch, uv, the model, folders and disks, /dev/shm, limits, ports, MLflow, the clock, and what
killed runs left behind. Nothing is started, written or downloaded. Each check says ok, warning,
problem or "cannot tell", and what to do. With the settings of a study it judges for that study.
torch is imported in a process of its own for at most limit_s seconds; deep=true imports the engine
there too, which can take a minute.

examples:
  python -m sweeper doctor
  python -m sweeper doctor model=qwen7b engine=vllm
  python -m sweeper doctor engine=transformers deep=true limit_s=120 format=json
  python -m sweeper doctor engine.python=/opt/vllm/bin/python tracking.uri=http://127.0.0.1:5000

exit codes: 0 ready, 1 at least one problem, 2 bad input
"""

from __future__ import annotations

import math

from sweeper.config.schema import SweeperConfig
from sweeper.errors import ConfigError
from sweeper.redaction import shown
from sweeper.verbs.studies import choice, take

MAX_LIMIT_S = 600.0


def run(arguments: list[str]) -> int:
    """Print what was found; 1 if a study would fail on it."""
    form, rest = choice(arguments, "format", ["table", "json"])
    deep, rest = choice(rest, "deep", ["false", "true"])
    limit, rest = take(rest, "limit_s", "120" if deep == "true" else "10")
    limit_s = _seconds(str(limit))
    cfg = _configured(rest)
    from sweeper.doctor.checks import examine, is_ready
    from sweeper.doctor.gather import gather
    from sweeper.doctor.render import as_json, as_text

    facts = gather(cfg, limit_s=limit_s, deep=deep == "true")
    findings = examine(facts)
    title = f"sweeper doctor: {facts.wanted.model} on engine {facts.wanted.engine}"
    print(as_json(findings) if form == "json" else shown(as_text(findings, title)))
    return 0 if is_ready(findings) else 1


def _configured(overrides: list[str]) -> SweeperConfig:
    """The study's configuration; the default one where what composes it is not installed."""
    try:
        from sweeper.config.compose import compose
        from sweeper.hardware.detect import detect

        return compose(overrides, device_kind=detect().kind)
    except ImportError:
        # What is missing is the first thing that the doctor says.
        return SweeperConfig()


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_LIMIT_S:
        raise ConfigError(
            f"limit_s={text} is no time to wait",
            f"give seconds, above 0 and up to {MAX_LIMIT_S:.0f}: limit_s=60",
        )
    return value
