"""Three load clients against one server with a known truth: how wrong, and at what cost.

    python -m benchmarks.foreign_clients install-guidellm     # once
    python -m benchmarks.client_fidelity --rounds 3 --json FILE

The stub has a core of its own and emits a token every 20 ms to each of 128 streams; the clients
take turns on the other core, round after round. Each figure a client reports is held against what
the stub noted for that very run, in the client's own definition: the steady state for ours, the
whole run for the others; TPOT from the first to the last token; TTFT from a request's arrival at
the stub, so that whatever a client adds before the request is on its way counts as its error.

Processor time is that of the client's process and its children. What a run with a single short
request costs is the start-up, and is taken off for the cost of a token.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.clients import GUIDELLM, OURS, VLLM_BENCH, Contestant, contestants
from benchmarks.foreign_clients import Job, Reported
from benchmarks.model import embedded_model
from benchmarks.processes import Spent, end_on_sigterm, get_json, machine, post, run_pinned, stub
from benchmarks.truth import Truth, error_percent, median, truth_of

_SETTLE_S = 1.0
# What lies in the sockets' buffers has been sent and not been taken in; it must not count for much.
_LONGER_WITHOUT_DELAY = 8


@dataclass(frozen=True)
class Run:
    """One client, once.

    Attributes:
        client: name.
        reported, truth: figures to compare.
        wall_s, cpu_s: of the whole process.
        startup_wall_s, startup_cpu_s: of the same client with one short request.
    """

    client: str
    reported: Reported
    truth: Truth
    wall_s: float
    cpu_s: float
    startup_wall_s: float
    startup_cpu_s: float

    @property
    def true_tokens_per_s(self) -> float:
        steady = self.truth.steady_tokens_per_s
        return steady if self.reported.steady and steady else self.truth.whole_tokens_per_s

    def figures(self) -> dict[str, float]:
        """What the table shows; names with units."""
        reported, truth = self.reported, self.truth
        net_cpu_s = max(0.0, self.cpu_s - self.startup_cpu_s)
        return {
            "tokens_per_s": reported.output_tokens_per_s,
            "true_tokens_per_s": self.true_tokens_per_s,
            "tokens_per_s_error_percent": error_percent(
                reported.output_tokens_per_s, self.true_tokens_per_s
            ),
            "ttft_ms": reported.ttft_ms,
            "true_ttft_ms": truth.ttft_ms,
            "ttft_added_ms": reported.ttft_ms - truth.ttft_ms,
            "tpot_ms": reported.tpot_ms,
            "true_tpot_ms": truth.tpot_ms,
            "tpot_error_percent": error_percent(reported.tpot_ms, truth.tpot_ms),
            "cpu_s": self.cpu_s,
            "startup_cpu_s": self.startup_cpu_s,
            "cpu_us_per_token": 1e6 * self.cpu_s / truth.all_tokens,
            "net_cpu_us_per_token": 1e6 * net_cpu_s / truth.all_tokens,
            "wall_s": self.wall_s,
            "load_s": truth.load_s,
            "wall_beside_load_s": self.wall_s - truth.load_s,
            "wall_beside_load_and_startup_s": self.wall_s - truth.load_s - self.startup_wall_s,
        }


@dataclass
class Study:
    """All that was measured."""

    runs: list[Run] = field(default_factory=list)
    intake: list[Run] = field(default_factory=list)

    def of(self, client: str, *, intake: bool = False) -> list[Run]:
        return [run for run in (self.intake if intake else self.runs) if run.client == client]


def run_once(client: Contestant, job: Job, core: int | None, startup: Spent | None) -> Run:
    """Start a client against a stub that has been reset, and compare.

    Raises:
        RuntimeError: it failed; with the end of its output.
    """
    post(f"{job.base_url}/reset")
    spent = run_pinned(client.command(job), core, environment=client.environment)
    if spent.exit_code != 0:
        raise RuntimeError(f"{client.name} ended with {spent.exit_code}:\n{spent.output[-3000:]}")
    reported = client.reported(job)
    truth = truth_of(get_json(f"{job.base_url}/truth"), job.requests, job.concurrency)
    return Run(
        client.name,
        reported,
        truth,
        spent.wall_s,
        spent.cpu_s,
        startup.wall_s if startup else 0.0,
        startup.cpu_s if startup else 0.0,
    )


def startup_of(client: Contestant, job: Job, core: int | None) -> Spent:
    """The cost of a run with one request of two tokens: the least a client can be asked for."""
    small = replace(job, concurrency=1, requests=1, output_tokens=2, warmups=0)
    run = run_once(client, small, core, None)
    return Spent(run.wall_s - run.truth.load_s, run.cpu_s, 0, "")


def compare(args: argparse.Namespace, folder: Path) -> Study:
    """All rounds of all clients; progress goes to standard error."""
    clients = contestants(args.clients, guidellm_workers=args.guidellm_workers)
    study = Study()
    beat = ["--token-ms", f"{args.token_ms:g}"]
    with stub(args.stub_core, *beat) as url:
        job = _job(args, url, folder)
        for number in range(args.rounds):
            for client in _turned(clients, number):
                startup = startup_of(client, job, args.client_core)
                time.sleep(_SETTLE_S)
                run = run_once(client, replace(job, seed=number + 1), args.client_core, startup)
                study.runs.append(run)
                _say(run)
                time.sleep(_SETTLE_S)
    with stub(args.stub_core, "--token-ms", "0") as url:
        job = _job(args, url, folder)
        job = replace(job, output_tokens=_LONGER_WITHOUT_DELAY * job.output_tokens, warmups=0)
        for number in range(args.rounds if args.intake else 0):
            for client in _turned(clients, number):
                run = run_once(client, job, args.client_core, None)
                study.intake.append(run)
                _say(run)
    return study


def _job(args: argparse.Namespace, url: str, folder: Path) -> Job:
    return Job(
        base_url=url,
        model="stub",
        tokenizer=args.tokenizer,
        concurrency=args.concurrency,
        requests=args.requests,
        input_tokens=args.input_tokens,
        output_tokens=args.output_tokens,
        warmups=args.concurrency if args.warm_up else 0,
        folder=folder,
    )


def _turned(clients: Sequence[Contestant], number: int) -> list[Contestant]:
    """Another one begins each round."""
    at = number % len(clients)
    return [*clients[at:], *clients[:at]]


def _say(run: Run) -> None:
    figures = run.figures()
    told = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
    late = run.truth.late_p99_ms
    doubts = f"; its own doubts: {'; '.join(run.reported.doubts)}" if run.reported.doubts else ""
    told += "" if late is None else f", stub late p99 {late:.2f} ms"
    print(f"{run.client}: {told}{doubts}", file=sys.stderr, flush=True)


COLUMNS = (
    ("tokens/s said", "tokens_per_s", "{:,.0f}"),
    ("true", "true_tokens_per_s", "{:,.0f}"),
    ("error %", "tokens_per_s_error_percent", "{:+.2f}"),
    ("TTFT said ms", "ttft_ms", "{:.1f}"),
    ("true", "true_ttft_ms", "{:.1f}"),
    ("TPOT said ms", "tpot_ms", "{:.3f}"),
    ("true", "true_tpot_ms", "{:.3f}"),
    ("CPU s", "cpu_s", "{:.1f}"),
    ("of it start-up", "startup_cpu_s", "{:.1f}"),
    ("µs a token", "net_cpu_us_per_token", "{:.0f}"),
    ("wall s", "wall_s", "{:.1f}"),
    ("beside load", "wall_beside_load_s", "{:.1f}"),
)


def table(study: Study, clients: Sequence[str]) -> str:
    """Markdown: medians over rounds, all values of the error below."""
    heads = ["client", *(head for head, _, _ in COLUMNS)]
    lines = [_row(heads), _row(["---", *["---:"] * len(COLUMNS)])]
    for client in clients:
        runs = [run.figures() for run in study.of(client)]
        cells = [form.format(median([run[key] for run in runs])) for _, key, form in COLUMNS]
        lines.append(_row([client, *cells]))
    lines += ["", "All rounds, error of tokens/s in %, milliseconds added to TTFT, µs a token:", ""]
    for client in clients:
        runs = [run.figures() for run in study.of(client)]
        told = (
            " ".join(form.format(run[key]) for run in runs)
            for key, form in (
                ("tokens_per_s_error_percent", "{:+.2f}"),
                ("ttft_added_ms", "{:+.1f}"),
                ("net_cpu_us_per_token", "{:.0f}"),
            )
        )
        lines.append(f"- {client}: {'; '.join(told)}")
    lines += [*_intake(study, clients), *_overhead(study)]
    return "\n".join(lines)


def _intake(study: Study, clients: Sequence[str]) -> list[str]:
    if not study.intake:
        return []
    lines = ["", "Tokens a second taken in from a server without delay, whole run:", ""]
    for client in clients:
        rates = [run.reported.whole_tokens_per_s for run in study.of(client, intake=True)]
        if not rates:
            continue
        told = " ".join(f"{rate:,.0f}" for rate in rates)
        lines.append(f"- {client}: {median(rates):,.0f} ({told})")
    return lines


def _overhead(study: Study) -> list[str]:
    overheads = [run.reported.details["overhead_s"] for run in study.of(OURS)]
    if not overheads:
        return []
    told = " ".join(f"{value:.3f}" for value in overheads)
    return ["", f"Overhead of a load level of ours beside warm-up and requests, s: {told}"]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def as_json(study: Study, args: argparse.Namespace) -> dict[str, Any]:
    def told(run: Run) -> dict[str, Any]:
        return {"client": run.client, "figures": run.figures(), **asdict(run)}

    asked = {
        name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()
    }
    return {
        "machine": machine(),
        "asked": asked,
        "runs": [told(run) for run in study.runs],
        "intake": [told(run) for run in study.intake],
    }


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--concurrency", type=int, default=128)
    options.add_argument("--requests", type=int, default=256)
    options.add_argument("--input-tokens", type=int, default=64)
    options.add_argument("--output-tokens", type=int, default=128)
    options.add_argument("--token-ms", type=float, default=20.0)
    options.add_argument("--client-core", type=int, default=0)
    options.add_argument("--stub-core", type=int, default=1)
    options.add_argument("--tokenizer", type=Path, default=None, help="default: embedded model")
    options.add_argument("--clients", nargs="+", default=[OURS, VLLM_BENCH, GUIDELLM])
    options.add_argument("--guidellm-workers", type=int, default=1, help="it has one core here")
    options.add_argument("--no-warm-up", dest="warm_up", action="store_false")
    options.add_argument("--no-intake", dest="intake", action="store_false")
    options.add_argument("--json", type=Path, default=None)
    return options


def main() -> None:
    """Command line; see the module's docstring."""
    args = parser().parse_args()
    end_on_sigterm()
    args.tokenizer = args.tokenizer or embedded_model()
    with tempfile.TemporaryDirectory() as folder:
        study = compare(args, Path(folder))
    print(table(study, args.clients))
    print(f"\n{machine()}; {args.concurrency} streams, {args.output_tokens} tokens each, one every")
    print(
        f"{args.token_ms:g} ms; {args.requests} requests a run; {args.rounds} rounds, interleaved."
    )
    if args.json is not None:
        args.json.write_text(json.dumps(as_json(study, args)))


if __name__ == "__main__":
    main()
