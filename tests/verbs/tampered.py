"""`python -m sweeper` with one thing tampered with: told to die, to fail, or to lie about time.

usage: python -m tests.verbs.tampered HOW WHERE NTH [ARGUMENTS OF SWEEPER ...]

  die-before | die-after | die-within   kill -9 at the NTH call of WHERE (module:attribute)
  fail-ERRNO                            OSError from the NTH call of WHERE on
  clock                                 the clock on the wall jumps three days back and forth
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def tamper(how: str, where: str, nth: int) -> None:
    """Wrap the function or method named by ``package.module:Class.method``."""
    module, _, name = where.partition(":")
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, wrapped(getattr(owner, last), how, nth))


def wrapped(original: Callable[..., Any], how: str, nth: int) -> Callable[..., Any]:
    calls = itertools.count(1)

    def call(*args: Any, **kwargs: Any) -> Any:
        count = next(calls)
        if how.startswith("fail-") and count >= nth:
            raise OSError(int(how[5:]), os.strerror(int(how[5:])))
        if how == "die-within" and count == nth:
            original(*args[:-1], args[-1][: len(args[-1]) // 2], **kwargs)
        if how in {"die-before", "die-within"} and count == nth:
            die()
        result = original(*args, **kwargs)
        if how == "die-after" and count == nth:
            die()
        return result

    return call


def jump() -> None:
    """Every look at the clock on the wall is three days off the one before."""
    real, turns = time.time, itertools.cycle((0, -3, 3))

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=next(turns))

    time.time = lambda: real() + 86400 * next(turns)
    for module in ("sweeper.trial.run", "sweeper.search.refused", "sweeper.tracking.lock"):
        importlib.import_module(module).datetime = Jumping  # type: ignore[attr-defined]


if __name__ == "__main__":
    how, where, nth, *arguments = sys.argv[1:]
    if how == "clock":
        jump()
    else:
        tamper(how, where, int(nth))
    from sweeper.__main__ import main

    sys.exit(main(arguments))
