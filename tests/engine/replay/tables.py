"""Small tables, written to a file in the forms that are read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CSV_COLUMNS = (
    "silicon_data_source",
    "backend",
    "model_path",
    "system",
    "precision",
    "mode",
    "isl",
    "osl",
    "gemm_quant_mode",
    "batch_size",
    "tp_size",
    "attention_dp_size",
    "prefill_num_workers",
    "prefill_tp_size",
    "decode_num_workers",
    "decode_tp_size",
    "silicon_ttft_ms",
    "silicon_tpot_ms",
)


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """JSON lines, gzipped if the name says so."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def deployment_line(
    deployment: Mapping[str, Any], throughput: float = 100.0, **more: Any
) -> dict[str, Any]:
    """One deployment that worked at 1 and 8 streams."""
    levels = [
        {
            "concurrency": streams,
            "metrics": metrics(throughput * streams, 1000.0),
            "virtual_s": 10.0,
        }
        for streams in (1, 8)
    ]
    return {"deployment": dict(deployment), "levels": levels, "virtual_s": 50.0, **more}


def metrics(throughput: float, e2e_ms: float) -> dict[str, float]:
    return {
        "output_tokens_per_s": throughput,
        "output_tokens_per_s_per_gpu": throughput,
        "e2e_p95_ms": e2e_ms,
    }


def sparse_table(path: Path, seqs: int = 6) -> Path:
    """12 deployments that are no product: a draft goes with small batches alone; one that fails."""
    lines: list[dict[str, Any]] = [{"table": {"model": "m", "hardware": "h", "predicted": False}}]
    for index in range(seqs):
        batch = 2**index
        lines.append(deployment_line({"max_num_seqs": batch}, 100.0 + 10 * index))
        if index < seqs // 2:
            drafted = {"max_num_seqs": batch, "speculative": "ngram", "num_speculative_tokens": 2}
            lines.append(deployment_line(drafted, 120.0 + 5 * index))
            more = {**drafted, "num_speculative_tokens": 4}
            lines.append(deployment_line(more, 125.0 + 5 * index))
    lines[-1] = {
        "deployment": lines[-1]["deployment"],
        "verdict": "CAPACITY",
        "cause": "no room",
        "virtual_s": 30.0,
    }
    return write_lines(path, lines)


def csv_row(streams: int | None = 8, **fields: Any) -> dict[str, Any]:
    """A measured row of a CSV; without `streams` its source does not say how many there were."""
    row = dict.fromkeys(CSV_COLUMNS, "")
    told = "" if streams is None else f"; silicon_concurrency={streams}"
    row |= {
        "silicon_data_source": f"somewhere{told}; measured=2026-04-03T00:00:00Z",
        "backend": "vllm",
        "model_path": "org/Model-7B",
        "system": "h200_sxm",
        "precision": "fp8",
        "mode": "agg",
        "isl": "1000",
        "osl": "101",
        "gemm_quant_mode": "fp8",
        "tp_size": "2",
        "attention_dp_size": "1",
        "silicon_ttft_ms": "100",
        "silicon_tpot_ms": "9",
    }
    return row | {name: str(value) for name, value in fields.items()}


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    lines = [",".join(CSV_COLUMNS)]
    lines += [",".join(str(row[name]) for name in CSV_COLUMNS) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path
