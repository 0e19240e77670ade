"""Do our client and ``vllm bench serve`` agree on a real server? Pairs, interleaved.

    python -m benchmarks.vllm_agreement --pairs 5 --json FILE

Starts one vLLM server with the embedded model (or takes ``--base-url``) and lets both clients
drive it by turns, one beginning in one pair and the other in the next. The throughputs compared
are those of the whole run, tokens by duration, because that is what ``vllm bench serve`` tells;
ours in the steady state stands beside them. TPOT is the mean over requests in both.

A shared machine changes its speed from one run to the next by more than two clients differ. So
each run is also held against the server's own histograms over that very run: TPOT by the sum of
decode times over the tokens after the first, throughput by Little's law from the sum of E2E
latencies. How far a client is from the server, beside how far the other one is, does not depend on
the machine's mood. Neither client warms up in its own run, for the two do it differently and the
histograms would count it; one pair that is thrown away goes first.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.clients import OURS, VLLM_BENCH, Contestant, contestants
from benchmarks.foreign_clients import Job, Reported
from benchmarks.model import embedded_model
from benchmarks.processes import end_on_sigterm, get_text, machine, run_pinned
from benchmarks.truth import median

LIMIT_PERCENT = 3.0


@dataclass(frozen=True)
class ServerSide:
    """What the server's histograms say of one run.

    Attributes:
        tpot_ms: decode time by output tokens after each request's first.
        tokens_per_s: streams times output tokens by the sum of E2E latencies (Little's law).
    """

    tpot_ms: float
    tokens_per_s: float


@dataclass(frozen=True)
class Pair:
    """Both clients, one right after the other.

    Attributes:
        ours, theirs: what they reported.
        first: name of the client that began.
        server_ours, server_theirs: the same runs as the server saw them.
    """

    ours: Reported
    theirs: Reported
    first: str
    server_ours: ServerSide
    server_theirs: ServerSide

    @property
    def our_tokens_per_s(self) -> float:
        return self.ours.whole_tokens_per_s

    @property
    def throughput_ratio(self) -> float:
        return self.our_tokens_per_s / self.theirs.output_tokens_per_s

    @property
    def tpot_ratio(self) -> float:
        return self.ours.tpot_ms / self.theirs.tpot_ms

    @property
    def throughput_ratio_to_server(self) -> float:
        """(ours by the server's) by (theirs by the server's)."""
        ours = self.our_tokens_per_s / self.server_ours.tokens_per_s
        return ours / (self.theirs.output_tokens_per_s / self.server_theirs.tokens_per_s)

    @property
    def tpot_ratio_to_server(self) -> float:
        """(ours by the server's) by (theirs by the server's)."""
        ours = self.ours.tpot_ms / self.server_ours.tpot_ms
        return ours / (self.theirs.tpot_ms / self.server_theirs.tpot_ms)


HISTOGRAMS = {
    "decode_s": "vllm:request_decode_time_seconds_sum",
    "requests": "vllm:request_decode_time_seconds_count",
    "e2e_s": "vllm:e2e_request_latency_seconds_sum",
    "tokens": "vllm:generation_tokens_total",
}


def totals(metrics: str) -> dict[str, float]:
    """The server's sums so far, from the text of ``/metrics``."""
    found = dict.fromkeys(HISTOGRAMS, 0.0)
    for line in metrics.splitlines():
        for name, sample in HISTOGRAMS.items():
            if line.startswith((sample + "{", sample + " ")):
                found[name] += float(line.rsplit(" ", 1)[1])
    return found


def server_side(before: dict[str, float], after: dict[str, float], concurrency: int) -> ServerSide:
    """What the server did between two looks."""
    grown = {name: after[name] - before[name] for name in HISTOGRAMS}
    return ServerSide(
        tpot_ms=1e3 * grown["decode_s"] / (grown["tokens"] - grown["requests"]),
        tokens_per_s=concurrency * grown["tokens"] / grown["e2e_s"],
    )


@contextmanager
def server(args: argparse.Namespace, model: Path, folder: Path) -> Iterator[tuple[str, str, str]]:
    """URL, model name and API key of a server that runs while in the block."""
    if args.base_url is not None:
        yield args.base_url.rstrip("/"), args.model, os.environ.get("OPENAI_API_KEY", "")
        return
    from sweeper.config.schema import EngineConfig  # noqa: PLC0415 - not needed with --base-url
    from sweeper.engine.protocol import LaunchRequest  # noqa: PLC0415
    from sweeper.engine.registry import create  # noqa: PLC0415

    flags = {
        "enforce_eager": True,
        "max_model_len": 1024,
        "max_num_seqs": 16,
        "gpu_memory_utilization": 0.2,  # a share of main memory on a CPU, which others need too
    }
    engine = create(EngineConfig(args=flags), cache_dir=folder / "cache")
    request = LaunchRequest(
        model_path=str(model),
        parameters={},
        run_dir=folder / "server",
        served_name="benchmark",
        start_timeout_s=600.0,
        token=secrets.token_hex(8),
        dtype="float32",
    )
    request.run_dir.mkdir(parents=True)
    with engine.serve(request) as running:
        print(f"ready after {running.ready_after_s:.0f} s", file=sys.stderr)
        yield running.base_url, running.served_name, running.api_key


def run_pair(job: Job, clients: Sequence[Contestant], timeout_s: float) -> Pair:
    """Both clients in this order.

    Raises:
        RuntimeError: one of them failed, or did not complete all requests.
    """
    told: dict[str, Reported] = {}
    sides: dict[str, ServerSide] = {}
    for client in clients:
        key = {"OPENAI_API_KEY": job.api_key} if job.api_key else {}
        environment = client.environment | key
        before = totals(get_text(f"{job.base_url}/metrics"))
        spent = run_pinned(client.command(job), None, environment=environment, timeout_s=timeout_s)
        if spent.exit_code != 0:
            raise RuntimeError(f"{client.name}:\n{spent.output[-3000:]}")
        told[client.name] = client.reported(job)
        if told[client.name].requests != job.requests:
            raise RuntimeError(f"{client.name} completed {told[client.name].requests} requests")
        after = totals(get_text(f"{job.base_url}/metrics"))
        sides[client.name] = server_side(before, after, job.concurrency)
    return Pair(told[OURS], told[VLLM_BENCH], clients[0].name, sides[OURS], sides[VLLM_BENCH])


def measure(args: argparse.Namespace, folder: Path) -> list[Pair]:
    """All pairs; each is printed to standard error as it comes."""
    clients = contestants([OURS, VLLM_BENCH])
    model = embedded_model() if args.tokenizer is None else args.tokenizer
    pairs = []
    with server(args, model, folder) as (url, name, key):
        job = Job(
            base_url=url,
            model=name,
            tokenizer=model,
            concurrency=args.concurrency,
            requests=args.requests,
            input_tokens=args.input_tokens,
            output_tokens=args.output_tokens,
            warmups=0,
            folder=folder,
            api_key=key or None,
        )
        run_pair(replace(job, seed=99, requests=2 * args.concurrency), clients, args.timeout_s)
        for number in range(args.pairs):
            order = clients if number % 2 == 0 else clients[::-1]
            pair = run_pair(replace(job, seed=100 + number), order, args.timeout_s)
            pairs.append(pair)
            print(_row(number, pair), file=sys.stderr, flush=True)
    return pairs


def table(pairs: Sequence[Pair]) -> str:
    """Markdown: every pair, then median and worst."""
    heads = [
        "pair", "first", "ours tokens/s", "vllm bench", "ratio", "ours steady",
        "ours TPOT ms", "vllm bench", "ratio", "ours TTFT ms", "vllm bench",
        "throughput ratio, each by the server's", "TPOT ratio, each by the server's",
    ]  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += [_row(number, pair) for number, pair in enumerate(pairs)]
    lines.append("")
    for what, ratios in (
        ("throughput", [pair.throughput_ratio for pair in pairs]),
        ("TPOT", [pair.tpot_ratio for pair in pairs]),
        ("throughput by the server's own", [p.throughput_ratio_to_server for p in pairs]),
        ("TPOT by the server's own", [pair.tpot_ratio_to_server for pair in pairs]),
    ):
        furthest = max(ratios, key=lambda ratio: abs(ratio - 1))
        verdict = "within" if abs(furthest - 1) * 100 <= LIMIT_PERCENT else "not all within"
        lines.append(
            f"{what}: median ratio {median(ratios):.4f}, furthest {furthest:.4f}; "
            f"{verdict} {LIMIT_PERCENT:g} %"
        )
    return "\n".join(lines)


def _row(number: int, pair: Pair) -> str:
    ours, theirs = pair.ours, pair.theirs
    cells = [
        str(number + 1),
        pair.first,
        f"{pair.our_tokens_per_s:.2f}",
        f"{theirs.output_tokens_per_s:.2f}",
        f"{pair.throughput_ratio:.4f}",
        f"{ours.output_tokens_per_s:.2f}",
        f"{ours.tpot_ms:.2f}",
        f"{theirs.tpot_ms:.2f}",
        f"{pair.tpot_ratio:.4f}",
        f"{ours.ttft_ms:.1f}",
        f"{theirs.ttft_ms:.1f}",
        f"{pair.throughput_ratio_to_server:.4f}",
        f"{pair.tpot_ratio_to_server:.4f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Command line; see the module's docstring."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--concurrency", type=int, default=4)
    options.add_argument("--requests", type=int, default=32)
    options.add_argument("--input-tokens", type=int, default=64)
    options.add_argument("--output-tokens", type=int, default=64)
    options.add_argument("--base-url", default=None, help="a server that is up, without /v1")
    options.add_argument("--model", default="benchmark", help="its name there")
    options.add_argument("--tokenizer", type=Path, default=None, help="default: embedded model")
    options.add_argument("--timeout-s", type=float, default=900.0, help="of one client's run")
    options.add_argument("--json", type=Path, default=None)
    args = options.parse_args()
    end_on_sigterm()
    with tempfile.TemporaryDirectory() as folder:
        pairs = measure(args, Path(folder))
    print(table(pairs))
    print(f"\n{machine()}; {args.concurrency} streams, {args.requests} requests a run, ")
    print(f"{args.input_tokens} tokens in, {args.output_tokens} out")
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(pair) for pair in pairs]))


if __name__ == "__main__":
    main()
