"""Asking an interpreter that is not our own: a few lines of code in, one JSON object out."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from sweeper.engine.process import inherited_environment
from sweeper.errors import EngineError


def ask(interpreter: str, code: str, *arguments: str, timeout_s: float) -> dict[str, Any]:
    """Run `code` and read the JSON object on its last line of output.

    Raises:
        EngineError: the interpreter cannot be started, fails, or does not answer in time.
    """
    try:
        done = subprocess.run(
            [interpreter, "-c", code, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=inherited_environment(),
            check=False,
        )
        if done.returncode == 0:
            answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
            return answer
        problem = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        problem = str(error)
    raise EngineError(
        f"the engine's interpreter {interpreter} cannot be asked: {problem}",
        "give a working Python interpreter with engine.python=/path/to/python",
    )
