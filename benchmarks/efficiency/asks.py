"""Deployments → what the simulator is asked, each physics once; its answers → a table. Pure.

Equal by construction, so asked once and used for all:

- `max_num_seqs` above the streams of a level: the scheduler never sees more than they send;
- `max_num_batched_tokens` above all the tokens a level can have waiting at once;
- `prompt_lookup_max`: the simulator has no text to look up in;
- `gpu_memory_utilization` once the smallest share holds every running sequence whole (the worker
  looks at the simulator's own cache size, and asks for larger shares only where it does not).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.efficiency.problems import (
    ACTIVATION_SCALES,
    GEMM_MODE,
    HARDWARE,
    SEED,
    SIMULATOR,
    Problem,
    space_config,
    space_of,
)
from sweeper.space.canonical import as_raw, enumerate_canonical, exists
from sweeper.space.model import Raw, Space

LIMIT = 100_000
SHARES = "gpu_memory_utilization"

# The launch costs of the virtual clock, in seconds.
PROCESS_S = 20.0  # interpreter, imports, workers, sockets
READ_GB_PER_S = 2.0  # weights from a local disk, all ranks together
COMPILE_S = 25.0  # torch.compile with a warm cache, profiling run
CAPTURE_S_PER_GRAPH = 0.1  # one CUDA graph each 8 sequences
WARM_UP_SHARE = 0.25  # of the load itself, ahead of each level

DECAY = 0.9  # each further drafted token is accepted this much less often


def whole(space: Space, deployment: Mapping[str, Any]) -> Raw:
    """Every parameter that exists in a deployment, its defaults written out."""
    raw = as_raw(space, deployment)
    values: Raw = {}
    for parameter in space.parameters:
        if exists(space, parameter, values):
            values[parameter.name] = raw[parameter.name]
    return values


def requests_for(concurrency: int) -> int:
    """Requests of a level: four rounds, two where that is already hundreds."""
    return concurrency * (4 if concurrency < 64 else 2)


def acceptance_rates(first: float, values: Mapping[str, Any]) -> list[float]:
    """Assumed chance that each drafted token is accepted if those before it were."""
    return [round(first * DECAY**at, 4) for at in range(values["num_speculative_tokens"])]


def ask_of(problem: Problem, values: Mapping[str, Any], concurrency: int) -> dict[str, Any]:
    """The one simulator question that answers a level of a deployment, memory shares left open."""
    workload = problem.workload
    rates = (
        acceptance_rates(workload.acceptance, values) if values["speculative"] == "ngram" else []
    )
    sequences = min(values["max_num_seqs"], concurrency)
    waiting = concurrency * (workload.input_tokens + 1 + len(rates))
    enough = [size for size in (1024, 2048, 8192, 16384) if size >= waiting]
    batched = min([values["max_num_batched_tokens"], *enough])
    scales = values.get(ACTIVATION_SCALES)
    return {
        "model": problem.model.simulator_id,
        "hardware": HARDWARE[problem.hardware],
        "tensor": values["tensor_parallel_size"],
        "max_sequences": sequences,
        "max_batched_tokens": batched,
        "gemm": GEMM_MODE[values["quantization"], scales],
        "kv_cache": "fp8" if values["kv_cache_dtype"] == "fp8" else None,
        "acceptance_rates": rates,
        "input_tokens": workload.input_tokens,
        "output_tokens": workload.output_tokens,
        "concurrency": concurrency,
        "requests": requests_for(concurrency),
        "seed": SEED,
    }


def key_of(ask: Mapping[str, Any]) -> str:
    """An ask as text: the same physics, the same text."""
    return json.dumps(ask, sort_keys=True, separators=(",", ":"))


def asks_of(problem: Problem) -> list[dict[str, Any]]:
    """Every different question of a problem, each with all memory shares of its space."""
    space = space_of(problem.model)
    found: dict[str, dict[str, Any]] = {}
    for values in _values(space):
        for concurrency in problem.workload.concurrency:
            ask = ask_of(problem, values, concurrency)
            found.setdefault(key_of(ask), ask)
    shares = list(space[SHARES].choices)
    return [{**ask, "shares": shares} for ask in found.values()]


def _values(space: Space) -> Iterator[Raw]:
    for deployment in _all(space):
        yield whole(space, deployment)


def _all(space: Space) -> list[Raw]:
    everything = enumerate_canonical(space, LIMIT)
    if everything is None:
        raise ValueError(f"space {space.name} is too large to try all of it")
    return everything


def table_lines(
    problem: Problem, answers: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The lines of a table: its head, then one a deployment.

    Args:
        problem: the problem.
        answers: `key_of(ask)` → share as text → what the simulator said.
    """
    space = space_of(problem.model)
    yield {"table": head_of(problem)}
    for deployment in _all(space):
        values = whole(space, deployment)
        said = [
            answers[key_of(ask_of(problem, values, streams))][str(values[SHARES])]
            for streams in problem.workload.concurrency
        ]
        yield {"deployment": deployment, **_row(problem, values, said)}


def head_of(problem: Problem) -> dict[str, Any]:
    """What a table says of itself."""
    config = space_config(problem.model)
    workload = problem.workload
    return {
        "name": problem.name,
        "model": problem.model.name,
        "facts": dict(problem.model.facts),
        "hardware": problem.hardware,
        "workload": {
            "input_tokens": workload.input_tokens,
            "output_tokens": workload.output_tokens,
        },
        "concurrency": list(workload.concurrency),
        "slo": dict(workload.slo),
        "space": {
            "name": config.name,
            "fixed": config.fixed,
            "parameters": config.parameters,
            "seeds": [],
        },
        "source": "predicted",
        "versions": {"simulator": SIMULATOR},
        "seed": SEED,
        "acceptance": workload.acceptance,
    }


def _row(
    problem: Problem, values: Mapping[str, Any], said: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    misfits = [answer for answer in said if "metrics" not in answer]
    weights_s = _weights_gb(problem, values) / READ_GB_PER_S
    if misfits:
        first = misfits[0]
        learnt = {key: first[key] for key in ("needed_gib", "available_gib") if key in first}
        return {
            "verdict": "CAPACITY",
            "cause": first["refused"],
            **({"learnt": learnt} if learnt else {}),
            "levels": [],
            "virtual_s": round(PROCESS_S + weights_s, 1),
        }
    drafted = values.get("num_speculative_tokens", 0)
    graphs = values["max_num_seqs"] * (1 + drafted) / 8
    driven_s = sum(answer["duration_s"] for answer in said) * (1 + WARM_UP_SHARE)
    started_s = PROCESS_S + weights_s + COMPILE_S + CAPTURE_S_PER_GRAPH * graphs
    return {
        "verdict": "OK",
        "levels": [
            {
                "concurrency": streams,
                "metrics": answer["metrics"],
                "virtual_s": round(answer["duration_s"] * (1 + WARM_UP_SHARE), 1),
            }
            for streams, answer in zip(problem.workload.concurrency, said, strict=True)
        ],
        "virtual_s": round(started_s + driven_s, 1),
    }


def _weights_gb(problem: Problem, values: Mapping[str, Any]) -> float:
    return problem.model.billions * (2.0 if values["quantization"] == "none" else 1.0)
