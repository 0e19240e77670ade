"""Makes `benchmarks/tables/`: asks the simulator every question of a problem once.

python -m benchmarks.efficiency.make_tables --work DIR [--pause-while FILE] [NAME ...]

About four minutes of one core a problem. Stopped and started again it goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.efficiency.asks import asks_of, key_of, table_lines
from benchmarks.efficiency.problems import PROBLEMS

WORKER = Path(__file__).with_name("predict_worker.py")
TABLES = Path(__file__).resolve().parent.parent / "tables"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="problems; all if none is named")
    parser.add_argument("--work", type=Path, required=True, help="where answers are kept")
    parser.add_argument("--pause-while", type=Path, default=None, help="wait while it exists")
    parser.add_argument("--out", type=Path, default=TABLES)
    args = parser.parse_args(argv)
    for problem in PROBLEMS:
        if args.names and problem.name not in args.names:
            continue
        answers = predicted(problem.name, asks_of(problem), args.work, args.pause_while)
        path = args.out / f"{problem.name}.jsonl.gz"
        write_lines(table_lines(problem, answers), path)
        print(f"{path}: {path.stat().st_size / 1024:.0f} KiB", flush=True)
    return 0


def predicted(
    name: str, questions: Sequence[Mapping[str, Any]], work: Path, pause_while: Path | None
) -> dict[str, dict[str, Any]]:
    """Run the worker over questions, going on where it was stopped.

    Returns:
        Question as text → memory share → answer.
    """
    work.mkdir(parents=True, exist_ok=True)
    asks, answers = work / f"{name}.asks.jsonl", work / f"{name}.answers.jsonl"
    asks.write_text("".join(json.dumps(ask) + "\n" for ask in questions), encoding="utf-8")
    command = ["uv", "run", "--script", str(WORKER), str(asks), str(answers)]
    if pause_while is not None:
        command += ["--pause-while", str(pause_while)]
    single = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env={**os.environ, **single})
    entries = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    return {key_of(entry["ask"]): entry["shares"] for entry in entries}


def write_lines(lines: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write a compressed table; the same lines give the same bytes."""
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    sys.exit(main())
