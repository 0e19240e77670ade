#!/bin/sh
# Finds a Python that sweeper runs on, and lets scripts/environment.py make .venv with it.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
suits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'
whole='import ensurepip, venv'
incomplete=

# try PYTHON [EXTRA]: goes on with that Python, or returns if it does not suit.
try() {
    name=$1
    shift
    # A name on the PATH may be a version manager's stub that cannot start, so each is tried.
    "$name" -c "$suits" >/dev/null 2>&1 || return 0
    if "$name" -c "$whole" >/dev/null 2>&1; then
        # Bytecode is wanted whatever the caller's shell says: engines import large packages.
        exec env -u PYTHONDONTWRITEBYTECODE -u PYTHONPATH -u PYTHONHOME \
            "$name" "$here/environment.py" "$@"
    fi
    incomplete=$name
}

if [ -n "${PYTHON:-}" ]; then
    try "$PYTHON" "$@"
else
    for candidate in python3.11 python3.12 python3.13 python3; do
        try "$candidate" "$@"
    done
fi

if [ -n "$incomplete" ]; then
    echo "setup: $incomplete cannot make virtual environments (no ensurepip)." >&2
    echo "  remedy: install the venv package of that Python, for example: apt-get install python3-venv" >&2
else
    echo "setup: sweeper needs Python 3.11, 3.12 or 3.13, and none was found on the PATH." >&2
    echo "  remedy: install one, or name it: make setup PYTHON=/path/to/python3.12" >&2
fi
exit 2
