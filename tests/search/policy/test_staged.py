from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sweeper.config.schema import SpaceConfig
from sweeper.search.policy.staged import REST, Climb, stages
from sweeper.space.canonical import canonical, deployment_hash
from sweeper.space.model import Space
from sweeper.space.parse import parse_space
from tests.search.policy.toy import SPACE, Study, measured

LINE = parse_space(
    SpaceConfig(
        name="line",
        parameters={
            "flag.odd": [False, True],
            "tensor_parallel_size": {"choices": [1, 2], "default": 1},
            "speculative": ["none", "ngram"],
            "num_speculative_tokens": {"choices": [2, 4], "when": {"speculative": ["ngram"]}},
            "max_num_seqs": {"choices": [4, 16], "default": 16},
            "kv_cache_dtype": ["auto", "fp8"],
            "quantization": ["none", "fp8_per_tensor"],
        },
    )
)


def walk(
    space: Space, score: Callable[[Mapping[str, Any]], float | None]
) -> tuple[Climb, list[str]]:
    """Answer every question; what was asked, in order."""
    scores: dict[str, float] = {}
    base = score({})
    assert base is not None
    scores[deployment_hash({})] = base
    climb, asked = Climb(space, scores), []
    for stage, raw in climb.questions():
        deployment = canonical(space, raw)
        asked.append(f"{stage}: {deployment}")
        value = score(deployment)
        if value is not None:
            scores[deployment_hash(deployment)] = value
    return climb, asked


def test_stages_follow_the_order_of_practitioners_and_strangers_come_last() -> None:
    found = stages(LINE)
    assert [(stage, [one.name for one in own]) for stage, own in found] == [
        ("quantization", ["quantization", "kv_cache_dtype"]),
        ("batching and memory", ["max_num_seqs"]),
        ("speculative decoding", ["speculative", "num_speculative_tokens"]),
        ("parallelism", ["tensor_parallel_size"]),
        (REST, ["flag.odd"]),
    ]


def test_each_stage_goes_on_from_the_best_so_far() -> None:
    gains = {"quantization": 1.3, "speculative": 1.2, "max_num_seqs": 0.8, "flag.odd": 1.004}

    def score(deployment: Mapping[str, Any]) -> float:
        value = 100.0
        for name in deployment:
            value *= gains.get(name, 1.0)
        return value

    climb, asked = walk(LINE, score)
    assert canonical(LINE, climb.best) == {
        "quantization": "fp8_per_tensor", "speculative": "ngram", "num_speculative_tokens": 2,
    }  # fmt: skip
    assert asked[1].endswith("{'kv_cache_dtype': 'fp8', 'quantization': 'fp8_per_tensor'}")
    assert climb.adopted == ["quantization", "speculative"]


def test_a_change_that_proves_useless_later_is_taken_back() -> None:
    """fp8 KV cache helps alone and hurts nothing; with quantized weights it does nothing."""

    def score(deployment: Mapping[str, Any]) -> float:
        seqs = 1.1 if "max_num_seqs" in deployment and "flag.odd" not in deployment else 1.0
        return 100.0 * seqs * (1.3 if "flag.odd" in deployment else 1.0)

    climb, asked = walk(LINE, score)
    assert canonical(LINE, climb.best) == {"flag.odd": True}
    assert any(text.startswith("taking changes back") for text in asked)


def test_a_failure_is_never_adopted() -> None:
    climb, _ = walk(LINE, lambda deployment: 100.0 if not deployment else None)
    assert climb.adopted == []


def test_it_tells_its_stages_and_hands_over_to_the_model(tmp_path: Path) -> None:
    study = Study(tmp_path, "staged")
    study.run(16)
    assert study.heard[0] == "stage: quantization"
    assert "stage: speculative decoding" in study.heard
    assert "the model of sampler=gp goes on" in study.heard[-1]
    assert measured(study.journal[1].deployment, 1).deployment == {"quantization": "fp8_per_tensor"}
    assert canonical(SPACE, study.journal[1].deployment) == study.journal[1].deployment
