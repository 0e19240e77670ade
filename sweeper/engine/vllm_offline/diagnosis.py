"""What vLLM's texts mean where it is started as `LLM(...)`; beside those of its server. Pure."""

from __future__ import annotations

from sweeper.engine.diagnosis import diagnose
from sweeper.engine.rules import rule
from sweeper.engine.vllm.diagnosis import RULES, WRAPPERS
from sweeper.engine.vllm.life_rules import LAST_RESORT
from sweeper.verdicts import Diagnosis, Phase, Verdict

INFEASIBLE = Verdict.INFEASIBLE_CONFIG

OFFLINE_RULES = (
    rule(
        "unknown_flag",
        r"(?:EngineArgs|LLM)\.__init__\(\) got an unexpected keyword argument "
        r"'(?P<unrecognized_arguments>\w+)'",
        INFEASIBLE,
        "the installed version's LLM class does not know this flag (some belong to the server "
        "only): remove or rename it in engine.args or the space",
        unrecognized_arguments=str,
    ),
    rule(
        "offline_data_parallel",
        r"LLM\(data_parallel_size=(?P<data_parallel_size>\d+)\) is not supported for single-",
        INFEASIBLE,
        "batches without a server run in one process: leave data_parallel_size out, or use "
        "engine=vllm",
        data_parallel_size=int,
    ),
)


def diagnose_offline(log_text: str, phase: Phase, exit_code: int | None) -> Diagnosis:
    """Explain why a worker failed. See `sweeper.engine.diagnosis.diagnose`."""
    return diagnose(
        log_text,
        phase,
        exit_code,
        rules=(*OFFLINE_RULES, *RULES),
        wrappers=WRAPPERS,
        last_resort=LAST_RESORT,
    )
