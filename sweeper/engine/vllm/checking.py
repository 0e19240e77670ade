"""Which of a study's flags and values an installed vLLM takes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweeper.engine.comparison import as_number
from sweeper.engine.flag_check import (
    AskedFlag,
    Flag,
    FlagCheck,
    KnownFlags,
    Problem,
    Refusal,
    Rename,
    as_text,
    dashed,
    find_problem,
    nearest_of,
)
from sweeper.engine.vllm.flags import OWNED, SPECULATIVE_PARTS
from sweeper.engine.vllm.renames import GONE_VALUES, gone_flags, renamed

SPECULATIVE_CONFIG = "speculative_config"

_FROM_ONE = frozenset(
    {
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "prefill_context_parallel_size",
        "decode_context_parallel_size",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_num_active_seqs",
        "max_num_scheduled_tokens",
        "max_parallel_loading_workers",
        "block_size",
        "mamba_block_size",
        "stream_interval",
        "prefill_schedule_interval",
        "api_server_count",
        "nnodes",
    }
)
_FROM_ZERO = frozenset(
    {
        "cpu_offload_gb",
        "kv_offloading_size",
        "long_prefill_token_threshold",
        "mm_processor_cache_gb",
        "num_gpu_blocks_override",
        "shutdown_timeout",
        "swap_space",
    }
)
_FRACTIONS = frozenset(
    {"cpu_offload_gb", "kv_offloading_size", "mm_processor_cache_gb", "swap_space"}
)
_SHARES = frozenset({"gpu_memory_utilization", "device_memory_utilization"})
_LENGTH = "max_model_len"


@dataclass(frozen=True)
class Installed:
    """What an installed vLLM takes.

    Attributes:
        engine: name and version for messages, ``vLLM 0.32.0``.
        version: as the package says it.
        flags: of its help with their values; None if they are not known, and then only what
            every version refuses is refused.
        methods: of speculative decoding; empty if not known.
        command_line: whether it takes them on a command line; see `KnownFlags`.
    """

    engine: str
    version: str
    flags: tuple[Flag, ...] | None
    methods: tuple[str, ...] = ()
    command_line: bool = True

    @property
    def known(self) -> KnownFlags | None:
        """The flags in the form that names can be looked up in."""
        if self.flags is None:
            return None
        return KnownFlags(self.engine, self.flags, self.command_line)


def check(asked: Sequence[AskedFlag], installed: Installed) -> FlagCheck:
    """Hold flags against an installed vLLM.

    Args:
        asked: what the study may send; words for the engine's default are not among them.
        installed: what it is sent to.
    """
    known = installed.known
    gone = gone_flags(installed.engine, installed.version)
    refusals: list[Refusal] = []
    renames: list[Rename] = []
    notes: list[str] = []
    for one in asked:
        rename = _rename(one, known, installed.version)
        if rename is not None:
            renames.append(rename)
        sent = one if rename is None else replace(one, value=rename.given)
        problem = _problem(sent, known, gone, installed.methods)
        if problem is not None:
            refusals.append(Refusal(one, problem))
        elif known is not None:
            notes += _notes(one, known)
    return FlagCheck(
        tuple(_once(refusals)), tuple(dict.fromkeys(renames)), tuple(dict.fromkeys(notes))
    )


def _problem(
    asked: AskedFlag, known: KnownFlags | None, gone: Mapping[str, Problem], methods: Sequence[str]
) -> Problem | None:
    if asked.parameter in SPECULATIVE_PARTS:
        return _speculative_part(asked, known, gone, methods)
    name = asked.name
    if name in OWNED:
        cause = f"--{dashed(name)} is set by every launch itself"
        return Problem(cause, "leave it out; the model is given by model.path", unknown=True)
    if known is not None:
        problem = find_problem(name, asked.value, known, gone)
        if problem is not None:
            word = as_text(asked.value)
            return replace(problem, remedy=GONE_VALUES.get((name, word), problem.remedy))
        flag = known.find(name)
        name = flag.name if flag is not None else name
    if name == SPECULATIVE_CONFIG:
        return _speculative_config(asked.value, known, methods)
    return _out_of_range(name, asked.value)


def _speculative_part(
    asked: AskedFlag, known: KnownFlags | None, gone: Mapping[str, Problem], methods: Sequence[str]
) -> Problem | None:
    if known is not None:
        problem = find_problem(SPECULATIVE_CONFIG, {}, known, gone)
        if problem is not None:
            return problem
    return _method(asked.value, known, methods) if asked.parameter == "speculative" else None


def _speculative_config(
    value: Any, known: KnownFlags | None, methods: Sequence[str]
) -> Problem | None:
    """The method in a configuration that was written out, as a mapping or as JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return Problem(f"{SPECULATIVE_CONFIG} is no JSON object: {value!r}", "write a mapping")
    if not isinstance(value, Mapping):
        return Problem(f"{SPECULATIVE_CONFIG} is no mapping: {value!r}", "write a mapping")
    method = value.get("method")
    return None if method is None else _method(method, known, methods)


def _method(word: Any, known: KnownFlags | None, methods: Sequence[str]) -> Problem | None:
    # Every version that knows `ngram` also takes the name it had first.
    allowed = {*methods, "[ngram]"} if "ngram" in methods else set(methods)
    if known is None or not allowed or str(word) in allowed:
        return None
    cause = f"{known.engine} has no speculative method {word}"
    return Problem(cause, nearest_of(str(word), list(methods)))


def _out_of_range(name: str, value: Any) -> Problem | None:
    """Numbers that no version of vLLM takes."""
    if name not in _FROM_ONE | _FROM_ZERO | _SHARES | {_LENGTH} or isinstance(value, bool):
        return None
    if name == _LENGTH and str(value) in {"auto", "-1"}:
        return None
    number = as_number(value)
    if number is None:
        return Problem(f"{name}={value} is not a number", "give a number")
    if name in _SHARES:
        fits = 0 < number <= 1
        return None if fits else Problem(f"{name}={value} is not a share", "above 0 and up to 1")
    least = 0 if name in _FROM_ZERO else 1
    kind = "number" if name in _FRACTIONS else "whole number"
    if number < least or (name not in _FRACTIONS and not number.is_integer()):
        return Problem(f"{name}={value} is not a {kind} from {least}", f"give {least} or more")
    return None


def _rename(asked: AskedFlag, known: KnownFlags | None, version: str) -> Rename | None:
    if asked.parameter in SPECULATIVE_PARTS or not isinstance(asked.value, str):
        return None
    flag = known.find(asked.name) if known is not None else None
    if known is not None and flag is None:
        return None
    return renamed(asked.name, asked.value, version, flag.choices if flag is not None else ())


def _notes(asked: AskedFlag, known: KnownFlags) -> Iterator[str]:
    flag = known.find(asked.name.removeprefix("no_")) or known.find(asked.name)
    if flag is not None and flag.without_effect:
        yield f"{asked.key}: {known.engine} says that --{dashed(flag.name)} has no effect any more"


def _once(refusals: list[Refusal]) -> Iterator[Refusal]:
    """A flag that is not there is named once for a key, whatever the number of its values."""
    named: set[str] = set()
    for refusal in refusals:
        if not refusal.problem.unknown or refusal.asked.key not in named:
            yield refusal
        if refusal.problem.unknown:
            named.add(refusal.asked.key)
