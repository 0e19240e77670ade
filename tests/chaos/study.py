"""The studies of a chaos run: small, on the mock, with faults by chance."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPACE = """
name: chaos
parameters:
  max_num_seqs: {choices: [2, 4, 8, 16, 32, 64], default: 16}
  max_num_batched_tokens: {choices: [512, 1024, 2048, 4096], default: 2048}
  block_size: {choices: [8, 16, 32], default: 16}
  enable_prefix_caching: {choices: [true, false], default: true}
"""
"""144 deployments: more than any budget here, so that it is the budget that ends a study."""

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB."
SEARCHED = {"max_num_seqs": [2, 4, 8, 32, 64]}
"""A baseline that can never run ends its study, so these faults leave it alone."""

FAULTS: dict[str, dict[str, Any]] = {
    "oom": {"die_at": "start", "log_text": OOM, "exit_code": 0, "chance": 0.05, "when": SEARCHED},
    "refused": {
        "die_at": "start",
        "log_text": "ValueError: No available memory for the cache blocks.",
        "chance": 0.03,
        "when": SEARCHED,
    },
    "strange": {"die_at": "start", "log_text": "KeyError: 'rope_scaling'", "chance": 0.03},
    "killed_at_start": {"die_at": "start", "exit_code": -9, "chance": 0.02},
    "hangs_at_start": {"hang_at": "start", "chance": 0.01},
    "dies_at_first": {"die_at": "ready", "exit_code": -11, "chance": 0.03, "when": SEARCHED},
    "dies_under_load": {
        "die_at": "load",
        "after_requests": 2,
        "exit_code": -6,
        "chance": 0.05,
        "when": SEARCHED,
    },
    "dead_engine": {"http_500_after": 3, "chance": 0.03, "when": SEARCHED},
    "garbage": {
        "garbage_at": "load",
        "garbage": "broken_json",
        "after_requests": 2,
        "chance": 0.02,
        "when": SEARCHED,
    },
    "no_usage": {"no_usage": True, "chance": 0.02},
    "breaks": {"reset_connection_every": 3, "chance": 0.02},
    "binary_log": {"log_binary": True, "die_at": "stop", "log_mib": 4, "chance": 0.03},
    "child": {"child": "session", "chance": 0.03},
    "daemon": {"child": "daemon", "chance": 0.03},
    "hidden": {"child": "hidden", "chance": 0.03},
    "zombie": {"child": "zombie", "chance": 0.03},
    "deaf": {"hang_at": "stop", "chance": 0.04},
}


@dataclass(frozen=True)
class ChaosStudy:
    """One study.

    Attributes:
        name: of the study.
        folder: of the chaos run; all its studies share one.
        launches: its budget.
        seed: of its faults and its sampler.
        judged: whether the output is judged too.
    """

    name: str
    folder: Path
    launches: int
    seed: int
    judged: bool

    @property
    def root(self) -> Path:
        return self.folder / "studies" / self.name

    @property
    def journal(self) -> Path:
        return self.root / "trials.jsonl"

    @property
    def starts(self) -> Path:
        """A line for every server that was started: its served name."""
        return self.folder / f"{self.name}.starts"

    @property
    def faults(self) -> dict[str, dict[str, Any]]:
        """The faults with seeds of their own."""
        return {
            name: {**fault, "seed": self.seed * 100 + place}
            for place, (name, fault) in enumerate(FAULTS.items())
        }

    def arguments(self) -> list[str]:
        """What the tuner is started with."""
        options = {
            "start_s": 0.0,
            "compile_s": 0.0,
            "starts": str(self.starts),
            "faults": list(self.faults.values()),
        }
        quality = ["quality.max_prompts=2", "quality.reference_tokens=4"]
        return [
            "engine=mock",
            "hardware=h100_80gb",
            "model=qwen7b",
            "space=chaos.yaml",
            f"study={self.name}",
            f"studies_dir={self.folder / 'studies'}",
            f"cache_dir={self.folder / 'cache'}",
            "workload.input_tokens=8",
            "workload.output_tokens=8",
            "load.concurrency=[1]",
            "load.requests_per_stream=2",
            "load.min_requests=4",
            "load.request_timeout_s=2",
            *(quality if self.judged else ["quality=none"]),
            f"budget.launches={self.launches}",
            "sampler=random",
            f"sampler.seed={self.seed}",
            "confirm=none",  # the checks hold every launch to be of a new deployment
            "engine.start_timeout_s=4",
            "engine.stop_timeout_s=0.5",
            f"+engine.options={_hydra(options)}",
        ]

    def outcomes(self) -> list[dict[str, Any]]:
        """Whole lines of the journal so far."""
        if not self.journal.exists():
            return []
        lines = self.journal.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines if line]

    def names(self) -> list[str]:
        """Served name of every server that was started, in order; each stands on the command line
        of every child it has left."""
        return self.starts.read_text().split() if self.starts.exists() else []

    def started(self) -> list[tuple[int, int]]:
        """Number and attempt of every server that was started, in order."""
        return [(int(parts[1]), int(parts[2])) for parts in (n.split("-") for n in self.names())]


def _hydra(value: Any) -> str:
    """A value in the grammar of overrides."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_hydra(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_hydra(item) for item in value) + "]"
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    return json.dumps(value)
