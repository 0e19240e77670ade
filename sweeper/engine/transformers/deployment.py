"""A deployment of the transformers engine: what its flags mean, and which do not go together.

    none        one request at a time, `generate` as in a script
    static      what waits is padded to one batch and generated together, to the longest's end
    continuous  the library's own continuous batching over a paged KV cache

Pure: read by the tuner's process and by the server before it imports torch.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

BATCHINGS = ("none", "static", "continuous")
SPECULATIVE = ("none", "ngram")
DTYPES = ("auto", "bfloat16", "float16", "float32")

_ONLY_WITH = {
    "max_num_seqs": ("static", "continuous"),
    "batch_wait_ms": ("static",),
    "max_num_batched_tokens": ("continuous",),
    "block_size": ("continuous",),
    "gpu_memory_utilization": ("continuous",),
    "enable_prefix_caching": ("continuous",),
    "speculative": ("none",),
    "compile": ("none",),
}
"""Flag → the batchings in which it means something. Elsewhere it is refused: a flag that changes
nothing would be measured as if it did."""


class RefusedError(ValueError):
    """A combination of flags that this engine cannot run, now or later."""


@dataclass(frozen=True)
class Deployment:
    """The flags of one launch; None leaves a value to the library.

    Attributes:
        dtype: of the weights; `auto` is the checkpoint's own.
        attn_implementation: the library's name of an attention, such as `sdpa` or `eager`.
        max_model_len: most tokens of prompt and output together; None is the model's own limit.
        batching: see the module.
        max_num_seqs: most requests of a batch.
        batch_wait_ms: how long a static batch waits for more requests once it has one.
        max_num_batched_tokens: tokens of one step of continuous batching.
        block_size: tokens of a KV-cache page.
        gpu_memory_utilization: share of the memory left beside the weights for the KV cache.
        enable_prefix_caching: whether requests share pages of a common beginning.
        compile: a static KV cache and a compiled forward pass.
        speculative: `ngram` drafts by looking the last words up in the text so far.
        num_speculative_tokens: drafted at most in a step.
        prompt_lookup_max: longest n-gram looked up.
    """

    dtype: str = "auto"
    attn_implementation: str | None = None
    max_model_len: int | None = None
    batching: str = "none"
    max_num_seqs: int = 32
    batch_wait_ms: float = 10.0
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    gpu_memory_utilization: float | None = None
    enable_prefix_caching: bool | None = None
    compile: bool = False
    speculative: str = "none"
    num_speculative_tokens: int | None = None
    prompt_lookup_max: int | None = None

    @property
    def batch_limit(self) -> int:
        """Most requests that run at the same time."""
        return 1 if self.batching == "none" else self.max_num_seqs


def read_deployment(flags: Mapping[str, Any]) -> Deployment:
    """Flags by underscored name → deployment.

    Raises:
        RefusedError: a flag this engine does not have, a value that is none, or a combination that
            does not work.
    """
    names = [field.name for field in fields(Deployment)]
    for name in flags:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has: {', '.join(names)}"
            raise RefusedError(f"the transformers engine has no flag {name}; {hint}")
    deployment = Deployment(**flags)
    check_values(deployment)
    _check_combination(deployment, flags)
    return deployment


def check_values(deployment: Deployment) -> None:
    """Each value alone. Raises RefusedError for one that its flag never takes."""
    _check_words(deployment)
    _check_numbers(deployment)


def _check_words(deployment: Deployment) -> None:
    for name, known in (
        ("dtype", DTYPES),
        ("batching", BATCHINGS),
        ("speculative", SPECULATIVE),
    ):
        value = getattr(deployment, name)
        if value not in known:
            raise RefusedError(
                f"{name}={value} is not known to the transformers engine; use one of "
                f"{', '.join(known)}"
            )


def _check_numbers(deployment: Deployment) -> None:
    for name in (
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_size",
        "num_speculative_tokens",
        "prompt_lookup_max",
    ):
        value = getattr(deployment, name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and (not whole or value < 1):
            raise RefusedError(f"{name}={value} is not a whole number from 1")
    wait = deployment.batch_wait_ms
    if isinstance(wait, bool) or not isinstance(wait, int | float) or wait < 0:
        raise RefusedError(f"batch_wait_ms={wait} is not a number of milliseconds")
    share = deployment.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        raise RefusedError(f"gpu_memory_utilization={share} is not a share of the memory")


def _check_combination(deployment: Deployment, flags: Mapping[str, Any]) -> None:
    given = {name for name in flags if flags[name] not in (None, False, "none")}
    for name in sorted(given & _ONLY_WITH.keys()):
        if deployment.batching not in _ONLY_WITH[name]:
            raise RefusedError(
                f"{name} needs batching={' or '.join(_ONLY_WITH[name])}, and batching is "
                f"{deployment.batching}"
            )
    if deployment.speculative == "none" and {"num_speculative_tokens", "prompt_lookup_max"} & given:
        raise RefusedError("num_speculative_tokens and prompt_lookup_max need speculative=ngram")
    if deployment.speculative == "ngram" and deployment.num_speculative_tokens is None:
        raise RefusedError("speculative=ngram without num_speculative_tokens")
    if deployment.speculative == "ngram" and deployment.compile:
        raise RefusedError(
            "speculative=ngram takes back what it drafted in vain, which the static KV cache of "
            "compile=true cannot do"
        )
