"""An estimate as JSON."""

from __future__ import annotations

import json
from typing import Any

from sweeper.estimate.render_memory import as_data
from sweeper.estimate.report import SpaceEstimate


def estimate_json(estimate: SpaceEstimate, model: str, hardware: str, devices: int) -> str:
    """Everything that the tables show, and the ranges behind it. All of it is predicted."""
    low, high = estimate.infeasible_interval
    document: dict[str, Any] = {
        "predicted": True,
        "model": model,
        "hardware": hardware,
        "devices": devices,
        "space": {
            "deployments": estimate.size,
            "examined": estimate.examined,
            "sampled": estimate.sampled,
            "infeasible_share": round(estimate.infeasible_share, 6),
            "infeasible_share_low": round(low, 6),
            "infeasible_share_high": round(high, 6),
            "by_rule": {
                rule: {
                    "deployments": count,
                    "cause": estimate.examples[rule][0],
                    "remedy": estimate.examples[rule][1],
                }
                for rule, count in estimate.by_rule.items()
            },
        },
        "defaults_refused": estimate.baseline,
        "corners": [
            {"name": each.name, "deployment": each.deployment, "memory": as_data(each.memory)}
            for each in estimate.corners
        ],
        "rows": [
            {
                "quantization": row.quantization,
                "tensor_parallel_size": row.tensor_parallel_size,
                "memory": as_data(row.memory),
                "speed": {
                    str(streams): {name: round(value, 4) for name, value in found.items()}
                    for streams, found in row.speed.items()
                },
            }
            for row in estimate.memory
        ],
        "speed_for": {
            "input_tokens": estimate.input_tokens,
            "output_tokens": estimate.output_tokens,
            "peaks_source": estimate.peaks_source,
        },
    }
    return json.dumps(document, indent=2, allow_nan=False, default=str)
