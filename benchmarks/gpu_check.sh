#!/bin/sh
# A short study on a machine that has a GPU, torch and transformers, and no vLLM.
#
#   benchmarks/gpu_check.sh                 a model of Qwen2.5-7B's shape with random weights
#   benchmarks/gpu_check.sh --tiny          the same on any CPU with a tiny shape (or SHAPE=tiny)
#
# Nothing is downloaded but missing Python packages; the model is made here. It ends within eight minutes and prints
# one table: level, TTFT, TPOT, tokens/s, and the speed of light beside.
#
#   PYTHON=/path/to/python    interpreter with torch and transformers (default: python3)
#   SWEEPER_WHEELS=DIR        take sweeper's missing packages from this folder of wheels, not from the index
#   CHECK_DIR=DIR             where the environment, the model and the study are put (default: a temporary folder)
#   BUDGET_S=480              seconds for everything
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
started=$(date +%s)
budget=${BUDGET_S:-480}
python=${PYTHON:-python3}
shape=${SHAPE:-qwen2.5-7b}
for argument in "$@"; do
    case $argument in
        --tiny) shape=tiny ;;
        *) echo "usage: $0 [--tiny]" >&2; exit 2 ;;
    esac
done

if ! command -v "$python" >/dev/null 2>&1; then
    echo "gpu_check: there is no $python; name an interpreter with PYTHON=/path/to/python" >&2
    exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "gpu_check: $("$python" --version) is too old, 3.11 is needed; name another with PYTHON=/path/to/python" >&2
    exit 2
fi
folder=${CHECK_DIR:-$(mktemp -d)}
mkdir -p "$folder"

# Which of sweeper's packages are missing; fails with its own message where torch or transformers is.
missing=$("$python" "$here/gpu_check.py" missing) || exit 2
if [ -n "$missing" ]; then
    echo "gpu_check: making an environment for $(echo "$missing" | wc -w) missing packages"
    "$python" "$here/gpu_check.py" environment "$folder/venv" || {
        echo "gpu_check: python cannot make a virtual environment (is the venv module installed?)" >&2
        exit 2
    }
    python=$folder/venv/bin/python
    if [ -n "${SWEEPER_WHEELS:-}" ]; then
        from="--no-index --find-links $SWEEPER_WHEELS"
        named="the folder $SWEEPER_WHEELS"
    else
        from=""
        named="the package index"
    fi
    # Word splitting is wanted: both are lists.
    # shellcheck disable=SC2086
    "$python" -m pip install --quiet --disable-pip-version-check $from $missing || {
        quoted=$(printf "'%s' " $missing)
        echo "gpu_check: $named does not give these packages: $quoted" >&2
        echo "gpu_check: give a folder of their wheels with SWEEPER_WHEELS=DIR, made where there is an index with" \
            "the same Python by: pip wheel --wheel-dir DIR $quoted" >&2
        exit 2
    }
fi

spent=$(($(date +%s) - started))
PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" exec "$python" "$here/gpu_check.py" run \
    --shape "$shape" --folder "$folder" --budget-s "$((budget - spent))"
