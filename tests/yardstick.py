"""How slow this machine is just now, told by something that is not ours."""

from __future__ import annotations

import subprocess
import sys
import time

QUIET_S = 0.4
"""What `hydra_s` takes on a quiet machine with two slow cores."""


def hydra_s() -> float:
    """Seconds in which a fresh interpreter imports Hydra, without which no setting is read."""
    code = "import hydra.core.override_parser.overrides_parser"
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.monotonic() - started


UNEVEN = 1.4
"""How much busier a busy machine may have been a moment before the yardstick."""


def stretched(limit_s: float, yardstick_s: float) -> float:
    """A limit for a quiet machine, as it is on this one now; never below the limit itself."""
    slower = yardstick_s / QUIET_S
    return limit_s * (slower * UNEVEN if slower > 1 else 1.0)
