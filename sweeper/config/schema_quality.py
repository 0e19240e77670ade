"""The part of the schema about precision: how checkpoints are made, how their output is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class RecipeConfig:
    """How the checkpoint of one value of `quantization` comes about, see `sweeper.quantize`.

    None where a field has no meaning for the tool, or where its own default is meant.
    """

    tool: str = "engine"
    """engine | published | autoawq | auto_gptq | gptqmodel | llmcompressor"""
    method: str | None = None
    """engine: its name for the online method; gptqmodel: gptq | awq; llmcompressor: the scheme."""
    path: str | None = None
    """published: folder, GGUF file or hub id of the checkpoint."""
    bits: int | None = None
    group_size: Any = None
    """Weights that share a scale: a number, or `auto`, the largest up to 128 that divides."""
    symmetric: bool | None = None
    act_order: bool | None = None
    """Columns in the order of their activations: slower to serve, better for few bits."""
    calibration: str | None = None
    """`builtin`, or a text or JSON-lines file with texts like those that will be served."""
    calibration_samples: int | None = None
    calibration_tokens: int | None = None
    """Length of a sample."""


@dataclass
class QuantizeConfig:
    """Checkpoints that are made here, on top of what the space names. See conf/quantize/."""

    recipes: dict[str, RecipeConfig] = field(default_factory=dict)
    """Value of `quantization` → how its checkpoint is made. Chosen by quantize=NAME or [A,B]."""
    python: str | None = None
    """Interpreter with the recipe's tool; None makes an environment of its own with uv."""
    device: str = "auto"
    """auto | cpu | cuda, where checkpoints are made"""
    timeout_s: float | None = None
    """For one checkpoint; None scales with the model's size."""
    memory_gib: float | None = None
    """Host memory that making one may take; None is nine tenths of what is free at its start."""
    cache_limit_gib: float | None = None
    """Checkpoints not used for longest go beyond this; None keeps all."""


@dataclass
class QualityConfig:
    """How the output of a deployment is judged against the reference."""

    name: str = "agreement"
    kind: str = "agreement"
    """agreement | perplexity | lm_eval | none: what ranks. Agreement is measured with each."""
    reference_tokens: int = 64
    """Greedy tokens the reference writes for each prompt of the suite."""
    max_prompts: int | None = None
    max_loglik_drop_nats: float = 0.2
    """Floor: mean log-likelihood of the reference text may fall by this much a token."""
    max_agreement_drop: float | None = None
    """Floor: agreement may fall by this share below the reference's own; None sets none."""
    written_tokens: int = 32
    """Greedy tokens a deployment writes for a prompt, to find broken decoding: at most as many as
    `reference_tokens`; 0 writes none."""
    text_path: str | None = None
    """perplexity: a text file; None takes a short one that comes with sweeper."""
    text_tokens: int = 4096
    """perplexity: of it, at most so many tokens."""
    tasks: list[str] = field(default_factory=list)
    """lm_eval: names of its tasks, or of those in `tasks_path`."""
    tasks_path: str | None = None
    """lm_eval: folder with task files of one's own."""
    task_limit: int | None = None
    """lm_eval: questions a task at most; None takes all."""
    few_shot: int | None = None
    """lm_eval: None leaves the task's own number of examples."""
    max_task_drop: float | None = None
    """Floor: the mean task score may fall by this much below the reference's; None sets none."""
    python: str | None = None
    """lm_eval: interpreter that has it; None takes the tuner's own, else one made with uv."""
    tasks_timeout_s: float = 7200.0
    request_timeout_s: float = 300.0
    timeout_s: float | None = None
    """Of the whole phase; None scales with the model's size."""
