"""Entry: `python -m sweeper [verb] [key=value ...]`. Imports nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sweeper import verbs
from sweeper.errors import SweeperError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code says how it ended (0, 1 failed, 2 bad input, 130 stopped)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return verbs.run(arguments)
    except SweeperError as error:
        print(f"sweeper: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("sweeper: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (a pager, head) has gone; nothing is left to say.
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
