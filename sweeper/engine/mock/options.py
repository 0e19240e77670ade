"""The mock's dials (`engine.options`): how fast it is, what fits, and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.engine.options import read_options
from sweeper.errors import ConfigError

FAULT_STAGES = ("", "start", "ready", "load")


@dataclass(frozen=True)
class MockOptions:
    """An imaginary engine on an imaginary device.

    Attributes:
        start_s: from process start to listening.
        compile_s: added unless the deployment is eager.
        prefill_ms_per_token: time of one prompt token.
        decode_ms: time of a decode step with one request.
        decode_ms_per_seq: added to a step by every further request of the batch.
        time_scale: factor on all of these.
        memory_gib: memory of one device.
        weights_gib: unquantized weights of the imaginary model.
        kv_kib_per_token: KV cache of one token at 16 bits.
        max_model_len: longest sequence of the imaginary model, in tokens.
        num_heads: its attention heads; a tensor parallel size must divide them.
        vocab_size: its vocabulary.
        quality_loss: share of reference tokens that lose their first rank, by value of
            `quantization` or `kv_cache_dtype`; replaces the built-in shares.
        acceptance: share of draft tokens accepted, by value of `speculative`.
        faults: what goes wrong, each as in `Fault`.
    """

    start_s: float = 0.1
    compile_s: float = 0.1
    prefill_ms_per_token: float = 0.02
    decode_ms: float = 3.0
    decode_ms_per_seq: float = 0.1
    time_scale: float = 1.0
    memory_gib: float = 16.0
    weights_gib: float = 6.0
    kv_kib_per_token: float = 64.0
    max_model_len: int = 4096
    num_heads: int = 32
    vocab_size: int = 32000
    quality_loss: dict[str, float] = field(default_factory=dict)
    acceptance: dict[str, float] = field(default_factory=dict)
    faults: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        die_at: `start` (before it listens), `ready` (at the first completion) or `load`.
        hang_at: the same stages; the process lives and does not answer.
        after_requests: with `load`, completions answered after the first one before it strikes.
        exit_code: of a death; negative kills the process by that signal.
        log_text: written to the log when it strikes.
        http_500_after: completions answered before all others get HTTP 500; negative is never.
        reset_connection_every: every so many completions the connection breaks; 0 is never.
        no_usage: answers come without token counts.
        empty_first_chunk: streams begin with an empty chunk at once.
        slow_factor: factor on all times.
        stubborn_child: a child in a session of its own ignores TERM and outlives its parent.
        ignore_sigterm: the server itself ignores TERM.
        ignores: parameters that are accepted and then not followed, as if left out.
        when: parameter → values; the fault strikes only if the deployment has one of them
            (`default` stands for a parameter that is left out).
    """

    die_at: str = ""
    hang_at: str = ""
    after_requests: int = 0
    exit_code: int = 1
    log_text: str = ""
    http_500_after: int = -1
    reset_connection_every: int = 0
    no_usage: bool = False
    empty_first_chunk: bool = False
    slow_factor: float = 1.0
    stubborn_child: bool = False
    ignore_sigterm: bool = False
    ignores: list[str] = field(default_factory=list)
    when: dict[str, Any] = field(default_factory=dict)

    def strikes(self, parameters: Mapping[str, Any]) -> bool:
        """Whether the deployment is one that it is meant for."""
        for name, values in self.when.items():
            wanted = values if isinstance(values, list) else [values]
            if parameters.get(name, "default") not in wanted:
                return False
        return True


def mock_options(options: Mapping[str, Any]) -> MockOptions:
    """Read `engine.options` of the mock. Raises ConfigError for what it does not know."""
    given = dict(options)
    faults = given.pop("faults", None) or []
    faults = [faults] if isinstance(faults, Mapping) else faults
    read = read_options(MockOptions, {**given, "faults": faults})
    for number, fault in enumerate(read.faults):
        read_fault(fault, f"engine.options.faults[{number}]")
    for name in ("quality_loss", "acceptance"):
        for value, share in getattr(read, name).items():
            if isinstance(share, bool) or not isinstance(share, int | float):
                raise ConfigError(
                    f"engine.options.{name}.{value} is {share!r}, which is no number",
                    "give a share between 0 and 1",
                )
    return read


def read_fault(fault: Mapping[str, Any], where: str = "fault") -> Fault:
    """One fault from its mapping. Raises ConfigError for what it does not know."""
    read = read_options(Fault, fault, where=where)
    for name in ("die_at", "hang_at"):
        stage = getattr(read, name)
        if stage not in FAULT_STAGES:
            raise ConfigError(f"{where}.{name}={stage!r} is no stage", "use start, ready or load")
    return read
