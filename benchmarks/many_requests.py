"""Many requests through the client: is its memory flat, and what does a request cost?

    python -m benchmarks.many_requests --requests 20000

The driver runs against the stub and writes ``requests.parquet`` as it goes on; resident memory is
read every half second. With ``--kill`` a second run is killed half-way, without a chance to tidy
up, and what it left on disk is read.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.processes import REPOSITORY, end_on_sigterm, machine, stub
from sweeper.config.schema import WorkloadConfig
from sweeper.load.address import ServerAddress
from sweeper.load.drive import DriveOptions, Listeners, run_level
from sweeper.load.level import CLOSED, LoadLevel
from sweeper.load.prompts import tokenize_bank
from sweeper.load.records import RequestOutcome, RequestRecord
from sweeper.load.requests_file import PART_ROWS, RequestsFile
from sweeper.load.workload.registry import create

_LOOK_EVERY_S = 0.5


@dataclass
class Memory:
    """Resident memory over time: (requests done, MiB)."""

    file: RequestsFile
    samples: list[tuple[int, float]] = field(default_factory=list)
    done: int = 0

    def note(self, record: RequestRecord) -> None:
        self.done += 1
        self.file.add(record)

    def watch(self, over: threading.Event) -> None:
        while not over.wait(_LOOK_EVERY_S):
            self.samples.append((self.done, resident_mib()))

    def growth_bytes_per_request(self) -> float | None:
        """Slope of the second half; None if there are too few samples to tell."""
        half = self.samples[len(self.samples) // 2 :]
        if len(half) < 3 or half[-1][0] == half[0][0]:
            return None
        mean_x = sum(x for x, _ in half) / len(half)
        mean_y = sum(y for _, y in half) / len(half)
        above = sum((x - mean_x) * (y - mean_y) for x, y in half)
        below = sum((x - mean_x) ** 2 for x, _ in half)
        return above / below * 2**20


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(args: argparse.Namespace, url: str) -> dict[str, Any]:
    """Drive all requests in one level."""
    server = ServerAddress(url, "stub")
    bank = tokenize_bank(server.base_url, server.model, None)
    work = WorkloadConfig(input_tokens=args.input_tokens, output_tokens=args.output_tokens)
    options = replace(DriveOptions(), level_timeout_s=3600.0)
    level = LoadLevel(CLOSED, args.requests, args.concurrency)
    file = RequestsFile(args.folder)
    file.begin(0, level, 0)
    memory, over = Memory(file), threading.Event()
    watcher = threading.Thread(target=memory.watch, args=(over,), daemon=True)
    before_mib, cpu_s, started_s = resident_mib(), time.process_time(), time.perf_counter()
    watcher.start()
    with file:
        run = run_level(
            server,
            level,
            create(work, bank, 1),
            stream="many",
            options=options,
            listeners=Listeners(on_record=memory.note),
        )
    over.set()
    watcher.join()
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - started_s
    return {
        "machine": machine(),
        "requests": len(run.records),
        "ok": sum(record.outcome is RequestOutcome.OK for record in run.records),
        "wall_s": wall_s,
        "cpu_us_per_request": 1e6 * cpu_s / len(run.records),
        "resident_before_mib": before_mib,
        "resident_after_mib": resident_mib(),
        "growth_bytes_per_request": memory.growth_bytes_per_request(),
        "rows_on_disk": rows_of(args.folder),
        "samples": memory.samples,
    }


def rows_of(folder: Path) -> int:
    """Rows that can be read of ``requests.parquet``, finished or not."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow, and not part of what is measured

    return int(pq.read_table(folder, columns=["index"]).num_rows)


def killed_half_way(args: argparse.Namespace) -> dict[str, Any]:
    """Kill a run when half of its requests are on disk; what can be read of the rest."""
    folder: Path = args.folder.with_name("killed.parquet")
    argv = [sys.executable, "-m", "benchmarks.many_requests", "--folder", str(folder)]
    argv += ["--requests", str(args.requests), "--token-ms", str(args.token_ms)]
    process = subprocess.Popen(
        argv, cwd=REPOSITORY, start_new_session=True, stdout=subprocess.DEVNULL
    )
    parts = 0
    try:
        while process.poll() is None and parts * PART_ROWS < args.requests / 2:
            time.sleep(_LOOK_EVERY_S)
            parts = len(list(folder.glob("part-*.parquet")))
    finally:
        half_way = process.poll() is None
        if half_way:
            os.killpg(process.pid, signal.SIGKILL)  # its stub with it
        process.wait()
    return {"killed": half_way, "rows_read_after_kill": rows_of(folder)}


def main() -> None:
    """Command line; see the module's docstring."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--requests", type=int, default=20_000)
    options.add_argument("--concurrency", type=int, default=128)
    options.add_argument("--input-tokens", type=int, default=64)
    options.add_argument("--output-tokens", type=int, default=32)
    options.add_argument("--token-ms", type=float, default=2.0)
    options.add_argument("--client-core", type=int, default=0)
    options.add_argument("--stub-core", type=int, default=1)
    options.add_argument("--json", type=Path, default=None)
    options.add_argument("--kill", action="store_true", help="also kill a second run half-way")
    options.add_argument("--folder", type=Path, default=None, help="default: a temporary one")
    args = options.parse_args()
    end_on_sigterm()
    with tempfile.TemporaryDirectory() as scratch:
        args.folder = args.folder or Path(scratch) / "requests.parquet"
        told = killed_half_way(args) if args.kill else {}
        told |= _measured(args)
    _tell(told, args.json)


def _measured(args: argparse.Namespace) -> dict[str, Any]:
    with stub(args.stub_core, "--token-ms", f"{args.token_ms:g}") as url:
        os.sched_setaffinity(0, {args.client_core})
        return measure(args, url)


def _tell(told: dict[str, Any], file: Path | None) -> None:
    if file is not None:
        file.write_text(json.dumps(told))
    samples = told.pop("samples")
    for name, value in told.items():
        print(f"{name}: {value if not isinstance(value, float) else round(value, 2)}")
    steps = samples[:: max(1, len(samples) // 10)]
    print("resident MiB by requests done:", ", ".join(f"{n}: {mib:.1f}" for n, mib in steps))


if __name__ == "__main__":
    main()
