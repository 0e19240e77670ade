"""What vLLM's own error texts mean, as one table. Pure.

Each rule quotes the fixed part of a text and names its figures; `versions` says where the text was
seen, and older wordings stand beside newer ones. The order matters only among rules that match the
same line. The table is in three parts: memory, refused combinations, and the life of the process.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sweeper.engine.diagnosis import SURROUNDINGS, Rule, diagnose, rule
from sweeper.engine.vllm.config_rules import PARALLELISM, QUANTIZATION, SCHEDULER, SPECULATIVE
from sweeper.engine.vllm.memory_rules import MEMORY
from sweeper.verdicts import Diagnosis, Phase, Verdict

INFEASIBLE = Verdict.INFEASIBLE_CONFIG
INFRA = Verdict.INFRA

WRAPPERS = re.compile(
    r"Engine core initialization failed"
    r"|Engine core proc \S+ died unexpectedly"
    r"|EngineCore failed to start|EngineCore encountered (?:an issue|a fatal error)"
    r"|EngineDeadError|WorkerProc failed to start"
    r"|WorkerProc initialization failed"
    r"|Worker proc \S+ died unexpectedly"
    r"|See root cause above|See stack trace \(?above"
    r"|No available shared memory broadcast block found"
    r"|AsyncLLM output_handler failed|CancelledError|KeyboardInterrupt|BrokenPipeError|EOFError"
)
"""Lines that follow from a failure, or warn of none; never the class of one."""

LIFE_CYCLE = (
    rule(
        "port_taken",
        r"(?i)address already in use",
        INFRA,
        "another program took the port; the launch is tried again on another one",
    ),
    rule(
        "compile_cache_corrupt",
        r"vLLM failed to compile the model.*previous compilation failed"
        r"|Expected tensors only, but got: <class 'int'>",
        INFRA,
        "remove the engine's cache (folder vllm in sweeper's cache) and try again",
        "0.9 and later",
    ),
    rule(
        "unknown_flag",
        r"error: unrecognized arguments: (?P<unrecognized_arguments>.+)",
        INFEASIBLE,
        "the installed version does not know this flag: remove or rename it in engine.args or the "
        "space",
        unrecognized_arguments=str,
    ),
    rule(
        "bad_flag_value",
        r"error: argument (?P<argument>\S+): (?P<problem>.+)",
        INFEASIBLE,
        "give the flag a value that the installed version accepts",
        argument=str,
        problem=str,
    ),
    *SURROUNDINGS,
)

LAST_RESORT = (
    # Whatever the text: the engine itself says that it has no code for what was asked.
    rule(
        "not_implemented",
        r"NotImplementedError: (?P<not_implemented>.+)",
        INFEASIBLE,
        "the installed version has no implementation for this combination: leave it out",
        not_implemented=str,
    ),
    # Whatever the text: the engine checked its configuration and refused it.
    replace(
        rule(
            "configuration_refused",
            r"pydantic_core\._pydantic_core\.ValidationError: \d+ validation errors? for",
            INFEASIBLE,
            "the engine refuses this configuration: leave the combination out",
        ),
        cause_below=True,
    ),
)

RULES: tuple[Rule, ...] = (
    *MEMORY,
    *PARALLELISM,
    *SCHEDULER,
    *QUANTIZATION,
    *SPECULATIVE,
    *LIFE_CYCLE,
)


def diagnose_vllm(log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
    """Explain why a vLLM server failed. See `sweeper.engine.diagnosis.diagnose`."""
    return diagnose(
        log_text, phase, exit_code, rules=RULES, wrappers=WRAPPERS, last_resort=LAST_RESORT
    )
