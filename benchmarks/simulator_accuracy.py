"""What a prediction is worth: the simulator against measured rows of other people's GPUs.

    python -m benchmarks.simulator_accuracy silicon_sample.csv [--backend vllm] [--json OUT]

Rows are of the form that aiconfigurator publishes (one measured load level a row). Each row is
predicted with vLLM's own defaults for what it does not tell. Printed, for each model on each GPU:
the median absolute relative error of TTFT and TPOT, rank correlations, and how often two
deployments under the same load stand in the right order of throughput per GPU, which is what a
search needs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from sweeper.estimate.simulator.answer import SimulatorAnswer
from sweeper.estimate.simulator.ask import SimulatorAsk
from sweeper.estimate.simulator.client import VERSION, Simulator

ROUNDS = 4
"""Requests a stream."""

MAX_TOKENS = 500_000
"""Output tokens of a level, above which a row takes too long to simulate on two cores."""

DENSE: dict[str, Any] = {}
EXPERTS = {"num_experts": 2}
"""All that is looked at of a config.json that the simulator carries itself."""

# (model, precision) → the simulator's own name, whether it has experts, precision of products.
MODELS: dict[tuple[str, str], tuple[str, dict[str, Any], str | None]] = {
    ("meta-llama/Llama-3.1-70B", "fp8"): ("nvidia/Llama-3.1-70B-Instruct-FP8", DENSE, None),
    ("meta-llama/Llama-3.1-70B", "fp4"): ("meta-llama/Meta-Llama-3.1-70B", DENSE, "nvfp4"),
    ("nvidia/Llama-3.1-8B-Instruct-FP8", "fp8"): ("meta-llama/Meta-Llama-3.1-8B", DENSE, "fp8"),
    ("Qwen/Qwen3-32B", "bf16"): ("Qwen/Qwen3-32B", DENSE, None),
    ("Qwen/Qwen3-32B", "fp8"): ("Qwen/Qwen3-32B-FP8", DENSE, None),
    ("openai/gpt-oss-120b", "fp4"): ("openai/gpt-oss-120b", EXPERTS, None),
    ("MiniMaxAI/MiniMax-M2.5", "fp8"): ("MiniMaxAI/MiniMax-M2.5", EXPERTS, None),
    ("MiniMaxAI/MiniMax-M2.5", "fp4"): ("nvidia/MiniMax-M2.5-NVFP4", EXPERTS, None),
    ("Qwen/Qwen3-235B-A22B-FP8", "fp8"): ("Qwen/Qwen3-235B-A22B-FP8", EXPERTS, None),
    ("moonshotai/Kimi-K2.5", "int4"): ("moonshotai/Kimi-K2.5", EXPERTS, None),
    ("moonshotai/Kimi-K2.5", "fp4"): ("nvidia/Kimi-K2.5-NVFP4", EXPERTS, None),
}
_CONCURRENCY = re.compile(r"silicon_concurrency=(\d+)")


@dataclass(frozen=True)
class Pair:
    """A deployment under one load, measured (on several days: the median of them) and predicted.

    Attributes:
        group: model, GPU and precision.
        load: (input tokens, output tokens, streams): rows of one load differ in the deployment.
        devices: GPUs.
        rows: measurements.
        ttft_ms, tpot_ms: (measured, predicted).
    """

    group: str
    load: tuple[int, int, int]
    devices: int
    rows: int
    ttft_ms: tuple[float, float]
    tpot_ms: tuple[float, float]

    def tokens_per_s_per_gpu(self, side: int) -> float:
        """Of the closed loop, from its latencies: the same arithmetic on both sides."""
        _, output_tokens, streams = self.load
        e2e_s = (self.ttft_ms[side] + self.tpot_ms[side] * (output_tokens - 1)) / 1e3
        return streams * output_tokens / e2e_s / self.devices


def asks_of(rows: pd.DataFrame) -> Iterator[tuple[pd.Series[Any], SimulatorAsk | str]]:
    """Each row with its question, or why it has none."""
    for _, row in rows.iterrows():
        yield row, _ask(row)


def _ask(row: pd.Series[Any]) -> SimulatorAsk | str:
    if row["mode"] != "agg":
        return "prefill and decode on servers of their own"
    known = MODELS.get((row["model_path"], row["precision"]))
    if known is None:
        return f"{row['model_path']} in {row['precision']}: no shape known"
    model_id, config, quantization = known
    streams = _streams(row)
    if ROUNDS * streams * int(row["osl"]) > MAX_TOKENS:
        return "takes too long to simulate"
    experts_tp, experts_ep = _size(row["moe_tp_size"]), _size(row["moe_ep_size"])
    if experts_tp > 1 and experts_ep > 1:
        return "experts split both ways"
    sizes = {
        "tensor_parallel_size": _size(row["tp_size"]),
        "pipeline_parallel_size": _size(row["pp_size"]),
        "data_parallel_size": _size(row["attention_dp_size"]),
    }
    given: dict[str, Any] = {name: size for name, size in sizes.items() if size > 1}
    if experts_ep > 1:
        given["enable_expert_parallel"] = True
    if quantization is not None:
        given["quantization"] = quantization
    return SimulatorAsk(
        model_config=config,
        model_id=model_id,
        hardware=row["system"],
        parameters=given,
        input_tokens=int(row["isl"]),
        output_tokens=int(row["osl"]),
        requests=ROUNDS * streams,
        concurrency=streams,
    )


def _streams(row: pd.Series[Any]) -> int:
    told = _CONCURRENCY.search(str(row["silicon_data_source"]))
    return int(told.group(1)) if told else int(row["batch_size"]) * _size(row["attention_dp_size"])


def _size(value: float) -> int:
    return max(1, int(value)) if pd.notna(value) else 1


@dataclass
class Measured:
    """What was measured of one question, on one day or several."""

    group: str
    ask: SimulatorAsk
    ttft_ms: list[float]
    tpot_ms: list[float]


def collect(rows: pd.DataFrame) -> tuple[list[Measured], Counter[str]]:
    """Questions with their measurements, and why rows were left out."""
    found: dict[str, Measured] = {}
    left_out: Counter[str] = Counter()
    for row, ask in asks_of(rows):
        if isinstance(ask, str):
            left_out[ask] += 1
            continue
        group = f"{row['model_path'].split('/')[-1]} {row['precision']} {row['system']}"
        one = found.setdefault(repr(ask), Measured(group, ask, [], []))
        one.ttft_ms.append(float(row["silicon_ttft_ms"]))
        one.tpot_ms.append(float(row["silicon_tpot_ms"]))
    return list(found.values()), left_out


def predict(
    measured: Sequence[Measured], simulator: Simulator, left_out: Counter[str]
) -> tuple[list[Pair], list[float]]:
    """Pairs, and seconds of each prediction; rows without one are added to `left_out`."""
    pairs, took = [], []
    for one in measured:
        begun = time.monotonic()
        found = simulator.predict(one.ask)
        took.append(time.monotonic() - begun)
        if len(took) % 50 == 0:
            print(f"{len(took)} predictions", file=sys.stderr, flush=True)
        if not isinstance(found, SimulatorAnswer):
            left_out[f"{one.group}: {found.cause}"] += len(one.ttft_ms)
            continue
        load = (one.ask.input_tokens, one.ask.output_tokens, one.ask.concurrency or 1)
        pairs.append(
            Pair(
                one.group,
                load,
                one.ask.device_count,
                len(one.ttft_ms),
                (median(one.ttft_ms), found.metrics["ttft_p50_ms"]),
                (median(one.tpot_ms), found.metrics["tpot_p50_ms"]),
            )
        )
    return pairs, took


def figures(pairs: Sequence[Pair]) -> dict[str, float]:
    """Errors and rank correlations of one group; what cannot be said is absent."""
    frame = pd.DataFrame(
        {
            "ttft": [pair.ttft_ms for pair in pairs],
            "tpot": [pair.tpot_ms for pair in pairs],
            "rate": [tuple(pair.tokens_per_s_per_gpu(side) for side in (0, 1)) for pair in pairs],
        }
    )
    told: dict[str, float] = {"points": len(pairs), "rows": sum(pair.rows for pair in pairs)}
    for name in frame:
        measured, predicted = (frame[name].str[side].astype(float) for side in (0, 1))
        told[f"{name}_error"] = float(((predicted - measured) / measured).abs().median())
        told[f"{name}_bias"] = float((predicted / measured).median())
        if len(pairs) >= 5:
            told[f"{name}_rank"] = float(spearmanr(measured, predicted).statistic)
    right, of = ordered(pairs)
    if of:
        told |= {"ordered": right / of, "ordered_pairs": of}
    return told


def ordered(pairs: Sequence[Pair], apart: float = 1.05) -> tuple[int, int]:
    """(right, all) orders of throughput per GPU of two deployments of one group under one load.

    Args:
        pairs: of any groups.
        apart: ratio from which two measurements count as different.
    """
    right = of = 0
    for one, other in combinations(pairs, 2):
        if (one.group, one.load) != (other.group, other.load):
            continue
        measured = one.tokens_per_s_per_gpu(0) / other.tokens_per_s_per_gpu(0)
        if 1 / apart < measured < apart:
            continue
        of += 1
        predicted = one.tokens_per_s_per_gpu(1) / other.tokens_per_s_per_gpu(1)
        right += (measured > 1) == (predicted > 1)
    return right, of


def show(pairs: Sequence[Pair], left_out: Counter[str], took: Sequence[float]) -> None:
    """Print the table."""
    names = sorted({pair.group for pair in pairs})
    columns = ["points", "rows", "ttft_error", "ttft_bias", "ttft_rank", "tpot_error", "tpot_bias"]
    columns += ["tpot_rank", "rate_error", "rate_rank", "ordered", "ordered_pairs"]
    print("| model, precision, GPU | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for name in [*names, "all"]:
        told = figures([pair for pair in pairs if name in {pair.group, "all"}])
        cells = [f"{told[column]:.3g}" if column in told else "-" for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(
        f"\nsimulator {VERSION}, {len(took)} predictions, median {pd.Series(took).median():.3f} s"
    )
    for reason, count in left_out.most_common():
        print(f"left out: {count} rows: {reason}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--backend", default="vllm")
    parser.add_argument("--limit", type=int, help="only so many rows of each model and GPU")
    parser.add_argument("--json", type=Path, help="all pairs, for a look of one's own")
    given = parser.parse_args(arguments)
    rows = pd.read_csv(given.table)
    rows = rows[rows["backend"] == given.backend]
    # Rows that tell no precision are of the unquantized model.
    rows = rows.assign(precision=rows["precision"].fillna("bf16"))
    if given.limit is not None:
        rows = rows.groupby(["model_path", "system", "precision"]).head(given.limit)
    with (
        tempfile.TemporaryDirectory() as work,
        Simulator(Path(work) / "log", tell=lambda text: print(text, file=sys.stderr)) as simulator,
    ):
        measured, left_out = collect(rows)
        pairs, took = predict(measured, simulator, left_out)
    show(pairs, left_out, took)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(pair) for pair in pairs]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
