"""Entry: `python -m sweeper [verb] [key=value ...]`. Imports nothing heavy."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from sweeper import verbs
from sweeper.errors import SweeperError
from sweeper.redaction import shown

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code says how it ended (0, 1 failed, 2 bad input, 130 stopped)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal's encoding may lack characters of tables, names and logs.
        sys.stdout.reconfigure(errors="replace")
    try:
        return verbs.run(arguments)
    except SweeperError as error:
        print(f"sweeper: {shown(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        with suppress(OSError, ValueError):  # the terminal may be what has gone
            print("sweeper: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (a pager, head) has gone; nothing is left to say.
        sys.stderr.close()
        return 0
    except Exception:
        # A bug: all of its traceback, but what it quotes may hold a secret.
        sys.stderr.write(shown(traceback.format_exc()))
        return 1


if __name__ == "__main__":
    sys.exit(main())
