"""Made-up surroundings, priors and outcomes for the tests of this room."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sweeper.config.schema import ModelConfig, SpaceConfig, SweeperConfig
from sweeper.engine.protocol import EngineFacts
from sweeper.engine.registry import create
from sweeper.hardware.facts import HardwareFacts
from sweeper.models.read import facts_from_config
from sweeper.models.resolve import ResolvedModel
from sweeper.search.priors.prior import Deployment, PredictedPoint, Prediction
from sweeper.search.setup import StudySetup
from sweeper.space.canonical import deployment_hash
from sweeper.space.parse import parse_space
from sweeper.trial.outcome import Point, TrialOutcome
from tests.factories import outcome
from tests.models.fakes import QWEN7B_CONFIG

H200 = HardwareFacts(
    "cuda",
    "NVIDIA H200",
    4,
    memory_gib=140.4,
    compute_capability=(9, 0),
    bandwidth_gbs=4800,
    tflops_bf16=989,
)
SPACE = {
    "max_num_seqs": {"choices": [8, 16, 32, 64, 128, 256], "default": 64},
    "tensor_parallel_size": {"choices": [1, 2, 4], "default": 1},
}
LEVELS = (1, 16)


def config(space: Mapping[str, Any] | None = None, **prior: Any) -> SweeperConfig:
    """A configuration with two load levels and priors as asked."""
    cfg = SweeperConfig()
    cfg.model = ModelConfig(
        name="qwen7b", path="Qwen/Qwen2.5-7B-Instruct", facts=dict(QWEN7B_CONFIG)
    )
    cfg.space = SpaceConfig(name="s", parameters=dict(space or SPACE))
    cfg.load.concurrency = list(LEVELS)
    cfg.quality.kind = "none"
    for name, value in prior.items():
        setattr(cfg.prior, name, value)
    return cfg


def setup(tmp_path: Path, cfg: SweeperConfig | None = None, **fields: Any) -> StudySetup:
    """Surroundings of a study on GPUs that are not here."""
    cfg = cfg or config()
    cfg.cache_dir = str(tmp_path)
    given: dict[str, Any] = {
        "model": ResolvedModel(
            "qwen7b",
            "Qwen/Qwen2.5-7B-Instruct",
            "hub",
            None,
            facts_from_config(QWEN7B_CONFIG),
            None,
        ),
        "hardware": H200,
        "engine_facts": EngineFacts("vllm", "0.33.0", "vllm", "cuda"),
        **fields,
    }
    return StudySetup(
        cfg=cfg,
        space=parse_space(cfg.space),
        draft=None,
        engine=create(cfg.engine, cache_dir=tmp_path),
        **given,
    )


Speed = Callable[[Mapping[str, Any]], float]


def truth(deployment: Mapping[str, Any]) -> float:
    """Speed of a deployment in the made-up world: more sequences, fewer devices."""
    sequences = float(deployment.get("max_num_seqs", 64))
    return math.sqrt(sequences) / float(deployment.get("tensor_parallel_size", 1))


def curve(speed: float) -> list[Point]:
    """Two load levels of a deployment that is so fast."""
    return [
        Point(
            {"kind": "closed", "concurrency": level},
            {"output_tokens_per_s_per_gpu": speed * level, "e2e_p95_ms": 1000.0 * level / speed},
            {},
            100,
            True,
        )
        for level in LEVELS
    ]


def measured(
    number: int, deployment: Mapping[str, Any], kind: str = "search", speed: Speed = truth
) -> TrialOutcome:
    """A trial that went well."""
    return trial(number, deployment, kind=kind, points=curve(speed(deployment)))


def trial(number: int, deployment: Mapping[str, Any], **fields: Any) -> TrialOutcome:
    """A trial under the hash that its deployment really has."""
    made = outcome(number, deployment=dict(deployment), **fields)
    if number == 0:
        made.kind = "baseline"
    made.deployment_hash = deployment_hash(deployment)
    return made


class Told:
    """A prior that says what a function says, and counts what it was asked.

    Args:
        speed: of a deployment; None where it has nothing to say.
        suggested: what it recommends outright.
    """

    def __init__(
        self,
        speed: Callable[[Mapping[str, Any]], float | None],
        suggested: Sequence[dict[str, Any]] = (),
        kind: str = "simulator",
        inferred: bool = False,
    ) -> None:
        self.kind = kind
        self.trust = 0.8
        self.notes: list[str] = ["says what it is told"]
        self.asked = 0
        self._speed = speed
        self._suggested = list(suggested)
        self._inferred = inferred

    def suggestions(self) -> list[dict[str, Any]]:
        return [dict(raw) for raw in self._suggested]

    def predict(self, deployments: Sequence[Deployment]) -> list[Prediction | None]:
        self.asked += len(deployments)
        inferred = self._inferred and len(deployments) > 1
        return [self._one(deployment, inferred) for deployment in deployments]

    def _one(self, deployment: Deployment, inferred: bool) -> Prediction | None:
        speed = self._speed(deployment)
        if speed is None:
            return None
        points = [PredictedPoint(point.load, point.metrics) for point in curve(speed)]
        return Prediction(tuple(points), inferred)
