"""What the texts of a failed transformers server mean, as one table. Pure."""

from __future__ import annotations

import re

from sweeper.engine.checkpoint_rules import CHECKPOINT
from sweeper.engine.diagnosis import diagnose
from sweeper.engine.rules import Rule, rule
from sweeper.engine.surroundings import SURROUNDINGS
from sweeper.verdicts import Diagnosis, Phase, Verdict

CAPACITY = Verdict.CAPACITY
INFEASIBLE = Verdict.INFEASIBLE_CONFIG
INFRA = Verdict.INFRA

WRAPPERS = re.compile(
    r"^Traceback|ContinuousBatchingLogger - ERROR|CancelledError|KeyboardInterrupt|BrokenPipeError"
)

RULES: tuple[Rule, ...] = (
    rule(
        "refused",
        r"^Refused: (?P<refusal>.+)",
        INFEASIBLE,
        "leave this combination out of the space, or change it as the text says",
        refusal=str,
    ),
    rule(
        "device_memory",
        r"(?i)(?:OutOfMemoryError|CUDA out of memory)"
        r"(?:.*tried to allocate (?P<asked_gib>[\d.]+) GiB)?"
        r"(?:.*total capacity of (?P<memory_gib>[\d.]+) GiB)?",
        CAPACITY,
        "use fewer requests at once (max_num_seqs), shorter ones (max_model_len), a smaller dtype, "
        "or a smaller model",
        asked_gib=float,
        memory_gib=float,
    ),
    rule(
        "cache_memory",
        r"Memory footprint (?P<footprint_bytes>[\d,]+) is more than available memory",
        CAPACITY,
        "lower max_num_batched_tokens or max_num_seqs, or raise gpu_memory_utilization",
        footprint_bytes=int,
    ),
    rule(
        "host_memory",
        r"DefaultCPUAllocator: .*(?:can't|not enough) |^MemoryError",
        CAPACITY,
        "use fewer requests at once, a smaller dtype or a smaller model",
    ),
    rule(
        "port_taken",
        r"(?i)address already in use",
        INFRA,
        "another program has the port: end it or use another port (a study does that by itself)",
    ),
    rule(
        "engine_missing",
        r"(?:ModuleNotFoundError|ImportError): "
        r"No module named '(?P<module>torch|transformers|sweeper)(?:\.[\w.]+)?'",
        INFRA,
        "install it in the engine's interpreter, see engine.python",
        every_launch=True,
        module=str,
    ),
    rule(
        "attention_missing",
        r"(?i)flash.?attention.*(?:not installed|cannot be used|can't be used|not available)"
        r"|(?:ImportError|ValueError): .*attn_implementation",
        INFEASIBLE,
        "install what this attention needs, or use attn_implementation=sdpa",
    ),
    rule(
        "module_missing",
        r"(?:ModuleNotFoundError|ImportError): (?:No module named '(?P<module>[\w.]+)'|.+requires)",
        INFEASIBLE,
        "install the module in the engine's interpreter, or leave what needs it out",
        module=str,
    ),
    rule(
        "architecture_unknown",
        r"model type `(?P<model_type>[\w.-]+)` but Transformers does not recognize"
        r"|Unrecognized configuration class|Unrecognized model in",
        INFEASIBLE,
        "use a version of transformers that knows this model, or trust_remote_code if it brings "
        "its own code",
        model_type=str,
    ),
    rule(
        "weights_missing",
        r"no file named .*(?:safetensors|pytorch_model)|Error no file named",
        INFEASIBLE,
        "complete the model folder, or draw weights with engine.options.random_weights=true",
    ),
    *SURROUNDINGS,
    *CHECKPOINT,
    rule(
        "device_unfit",
        r"no kernel image is available for execution on the device",
        INFRA,
        "install a build of torch for this GPU and driver",
        every_launch=True,
    ),
)


def diagnose_transformers(log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
    """Explain why a transformers server failed. See `sweeper.engine.diagnosis.diagnose`."""
    return diagnose(log_text, phase, exit_code, rules=RULES, wrappers=WRAPPERS)
