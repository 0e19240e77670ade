"""Texts that toolchains are known to fail with, in one table. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sweeper.verdicts import Verdict

MORE_MEMORY = (
    "make it on a machine with more memory, or with fewer and shorter texts "
    "(quantize.recipes.NAME.calibration_samples, .calibration_tokens)"
)


@dataclass(frozen=True)
class Rule:
    """A text that toolchains are known to fail with.

    Attributes:
        name: short identifier.
        pattern: searched in one line.
        verdict: what it means.
        remedy: what the user can change.
        of_machine: True if every other checkpoint would fail here, too.
    """

    name: str
    pattern: re.Pattern[str]
    verdict: Verdict
    remedy: str
    of_machine: bool = False


def _rule(
    name: str, pattern: str, verdict: Verdict, remedy: str, *, of_machine: bool = False
) -> Rule:
    return Rule(name, re.compile(pattern), verdict, remedy, of_machine)


CAPACITY, INFEASIBLE, INFRA = Verdict.CAPACITY, Verdict.INFEASIBLE_CONFIG, Verdict.INFRA

DISK_FULL = _rule(
    "disk_full",
    r"No space left on device|\[Errno 28\]|os error 28|Disk quota exceeded|\[Errno 122\]",
    INFRA,
    "make room: `python -m sweeper checkpoints prune=KEY` removes checkpoints, cache_dir=PATH "
    "takes another disk",
    of_machine=True,
)

RULES: tuple[Rule, ...] = (
    # The machine.
    DISK_FULL,
    _rule(
        "quantize_gpu_memory",
        r"CUDA out of memory|CUDA error: out of memory|HIP out of memory",
        CAPACITY,
        "make it on the CPU (quantize.device=cpu), on a larger GPU, or with fewer and shorter "
        "texts (quantize.recipes.NAME.calibration_samples, .calibration_tokens)",
    ),
    _rule(
        "quantize_memory",
        r"DefaultCPUAllocator: can't allocate memory|^MemoryError|Cannot allocate memory"
        r"|\[Errno 12\]|std::bad_alloc",
        CAPACITY,
        MORE_MEMORY,
    ),
    # The tools and what they are built on.
    _rule(
        "autoawq_transformers",  # LlamaFactory#9247
        r"cannot import name 'PytorchGELUTanh'",
        INFRA,
        "AutoAWQ 0.2.9 needs transformers 4.51.3: let sweeper make its environment (leave "
        "quantize.python out), or install that version into yours; w4a16_awq makes AWQ without it",
    ),
    _rule(
        "old_transformers",
        r"Tokenizer class TokenizersBackend does not exist",
        INFEASIBLE,
        "the tokenizer was written by transformers 5 and this tool needs an older one: put "
        '"tokenizer_class": "PreTrainedTokenizerFast" into a copy of its tokenizer_config.json, or '
        "take a recipe of llm-compressor (w4a16, w4a16_awq, w8a8)",
    ),
    _rule(
        "architecture_not_quantizable",
        r"(?:\S{1,100} (?:model )?|model type |architecture )(?:isn't|is not) supported(?: yet)?"
        r"|does not recognize this architecture|Unrecognized configuration class"
        r"|Unsupported model(?: type| architecture)",
        INFEASIBLE,
        "this tool does not know the model's architecture: take a recipe of another tool "
        "(llm-compressor's w4a16 and w8a8 know every decoder), or a published checkpoint",
    ),
    _rule(
        "group_size_not_divisible",
        r"(?i:not divisible by (?:the )?group[ _]?size|group[ _]?size .{1,80}must divide"
        r"|must be (?:evenly )?divisible by (?:the )?group[ _]?size)",
        INFEASIBLE,
        "choose a group size that divides the layers' input widths, or group_size: auto",
    ),
    _rule(
        "remote_code",
        r"contains custom code which must be executed|set the option [`']trust_remote_code=True"
        r"|pass(?:ing)? the argument [`']trust_remote_code=True",
        INFEASIBLE,
        "read the model's code, then allow it with model.trust_remote_code=true",
    ),
    # The model's files.
    _rule(
        "model_gated",
        r"GatedRepoError|gated repo|is gated\. You must|40[13] Client Error",
        INFRA,
        "the hub wants a login for this model: accept its terms there and set HF_TOKEN, or give a "
        "local folder with model.path",
    ),
    _rule(
        "hub_unreachable",
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|offline mode is enabled"
        r"|couldn't connect to 'https://|HTTPSConnectionPool\(|ConnectionError"
        r"|Temporary failure in name resolution|Network is unreachable",
        INFRA,
        "connect to the network, or put what is missing on this machine first (the model by "
        "model.path=FOLDER, the tool by quantize.python=PATH)",
    ),
    _rule(
        "model_missing",
        r"RepositoryNotFoundError|RevisionNotFoundError|404 Client Error"
        r"|is not a (?:local folder and is not a )?valid model identifier",
        INFEASIBLE,
        "there is no such model or revision: check model.path and model.revision",
    ),
    _rule(
        "weights_damaged",
        r"SafetensorError|[Hh]eader[ _]?[Tt]oo[ _]?(?:[Ll]arge|[Ss]mall)|MetadataIncompleteBuffer"
        r"|InvalidHeader|file not fully covered|UnpicklingError|PytorchStreamReader failed",
        INFRA,
        "a weight file of the model is damaged or incomplete: delete it and fetch it again",
    ),
    _rule(
        "weights_missing",
        r"[Nn]o file named .{0,200}(?:safetensors|pytorch_model)",
        INFEASIBLE,
        "the model's folder has no weights: give one that has, they are what is quantized",
    ),
)
"""Read from the top: the first that knows a line names its cause."""

SAID: Mapping[str, tuple[str, Verdict, str]] = {
    "no_cuda": (
        "no_cuda",
        INFEASIBLE,
        "make it on a machine with an NVIDIA GPU and name it as a published checkpoint here "
        "(model.checkpoints.NAME=FOLDER), or take a recipe that needs none (w4a16, w8a8, awq)",
    ),
    "unsupported": (
        "quantize_unsupported",
        INFEASIBLE,
        "take other values for the recipe, or a recipe of another tool",
    ),
    "memory": (
        "quantize_memory",
        CAPACITY,
        MORE_MEMORY,
    ),
    "calibration": (
        "calibration",
        INFEASIBLE,
        "give more or longer texts (quantize.recipes.NAME.calibration=FILE), or ask for fewer and "
        "shorter samples",
    ),
}
"""What a worker says of its own end → rule, verdict, remedy."""
