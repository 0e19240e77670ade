"""What vLLM's own error texts mean, as one table. Pure.

Each rule quotes the fixed part of a text and names its figures; `versions` says where the text was
seen, and older wordings stand beside newer ones under the same name. The order matters only among
rules that match the same line: what is more exact stands first.

Versions: 0.32 was read in the source of the CPU build, 0.33 and 0.11 in quoted sources, others in
public reports. `any` marks texts of Python, torch, Triton, Ray or the operating system.
"""

from __future__ import annotations

import re

from sweeper.engine.checkpoint_rules import CHECKPOINT
from sweeper.engine.diagnosis import diagnose
from sweeper.engine.rules import Rule
from sweeper.engine.surroundings import SURROUNDINGS
from sweeper.engine.vllm.config_rules import ATTENTION, COMPILATION, PARALLELISM, SCHEDULER
from sweeper.engine.vllm.host_memory_rules import HOST_MEMORY
from sweeper.engine.vllm.life_rules import (
    COMMAND_LINE,
    COMPILER,
    KERNELS,
    LAST_RESORT,
    PROCESSES,
)
from sweeper.engine.vllm.memory_rules import MEMORY
from sweeper.engine.vllm.quantization_rules import QUANTIZATION
from sweeper.engine.vllm.speculative_rules import SPECULATIVE
from sweeper.verdicts import Diagnosis, Phase

WRAPPERS = re.compile(
    r"Engine core initialization failed"
    r"|Engine core proc(?:ess)? \S+ died unexpectedly"
    r"|EngineCore failed to start|EngineCore encountered (?:an issue|a fatal error)"
    r"|EngineDeadError|WorkerProc failed to start"
    r"|WorkerProc initialization failed"
    r"|Worker proc \S+ died unexpectedly|RayWorkerProc rank=\d+ died unexpectedly"
    r"|See root cause above|See stack trace \(?above"
    r"|No available shared memory broadcast block found"
    r"|Using KV cache scaling factor|Using uncalibrated \w+ scale"
    r"|RayActorError|ActorDiedError|WorkerCrashedError|The actor died"
    r"|Error raised in subprocess|MQLLMEngine is already dead|Executor failed\.$"
    r"|AsyncLLM output_handler failed|CancelledError|KeyboardInterrupt|BrokenPipeError|EOFError"
    r"|ConnectionResetError|^Dumping (?:input data|scheduler (?:output|stats))\b"
)
"""Lines that follow from a failure, or warn of none, or show what ran; never the class of one."""

DEAD_INSIDE = re.compile(
    r"EngineDeadError|Engine core proc(?:ess)? \S+ died unexpectedly"
    r"|Worker proc \S+ died unexpectedly"
)

RULES: tuple[Rule, ...] = (
    *MEMORY,
    *HOST_MEMORY,
    *PARALLELISM,
    *SCHEDULER,
    *QUANTIZATION,
    *SPECULATIVE,
    *ATTENTION,
    *COMPILATION,
    *COMMAND_LINE,
    *SURROUNDINGS,
    *CHECKPOINT,
    *COMPILER,
    *KERNELS,
    *PROCESSES,
)


def diagnose_vllm(log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
    """Explain why a vLLM server failed. See `sweeper.engine.diagnosis.diagnose`."""
    return diagnose(
        log_text,
        phase,
        exit_code,
        rules=RULES,
        wrappers=WRAPPERS,
        last_resort=LAST_RESORT,
        dead_inside=DEAD_INSIDE,
    )
