"""The mock's server as a talkative engine: it begins by repeating what it was told and should not.

The text comes from the file that ``ECHO_FILE`` names; a launch with speculation dies of it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sweeper.engine.mock.server import main

if __name__ == "__main__":
    print(Path(os.environ["ECHO_FILE"]).read_text(encoding="utf-8"), flush=True)
    settings = Path(sys.argv[sys.argv.index("--settings") + 1]).read_text(encoding="utf-8")
    sys.exit(1 if '"speculative"' in settings or '"speculative_config"' in settings else main())
