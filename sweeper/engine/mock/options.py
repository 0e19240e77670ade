"""The mock's dials (`engine.options`): how fast it is, what fits, and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.engine.mock.fault import read_fault
from sweeper.engine.options import read_options
from sweeper.errors import ConfigError


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
        devices: names of devices that a launch locks, as on a machine that has them.
        device_memory: a file that stands for the memory of these devices, see
            `sweeper.engine.device_memory.FileMemory`; empty looks at none.
        known_flags: flags that it knows, each as in a help text (``--dtype {auto,half}``); then
            others are refused before the first launch, as vLLM's are. Empty takes all.
        starts: a file to which every start adds a line with its served name; empty for none.
        faults: what goes wrong, each as in `sweeper.engine.mock.fault.Fault`.
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
    devices: list[str] = field(default_factory=list)
    device_memory: str = ""
    known_flags: list[str] = field(default_factory=list)
    starts: str = ""
    faults: list[Any] = field(default_factory=list)


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
