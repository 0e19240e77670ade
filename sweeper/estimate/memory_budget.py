"""How much of a device an engine may use. Pure.

share of the device     weights, activations, runtime and cache together  (gpu_memory_utilization)
cache of a given size   the rest of the device is for everything else     (kv_cache_memory_bytes,
                        on a processor also VLLM_CPU_KVCACHE_SPACE in GiB)
"""

from __future__ import annotations

from dataclasses import dataclass

from sweeper.estimate.facts import DEFAULT_MEMORY_SHARE, Context
from sweeper.estimate.flags import given
from sweeper.estimate.memory_sizes import GIB, Span, exactly
from sweeper.hardware.facts import HardwareFacts

OLD_MEMORY_SHARE = 0.90
"""Default of `gpu_memory_utilization` before vLLM 0.12."""

SEEN_SHARE = Span(0.965, 0.985, 1.0)
"""Memory that an engine sees, over what the driver reports (from 14.56 of 15.0 GiB on a T4 to 79.2
of 79.6 GiB on an H100)."""
DESCRIBED_MOST = 1.02
"""A device that is only described may be a variant with a little more."""


@dataclass(frozen=True)
class Budget:
    """What an engine may use of one device.

    Attributes:
        gib: for everything, the cache with it; without a cache of a given size the share.
        share: of the device; 1 where the cache has a given size.
        device_gib: the device as described.
        cache_gib: the size that was given to the cache, None if it takes what is left.
        is_open: the size was given in a way that is not understood.
    """

    gib: Span
    share: float
    device_gib: float
    cache_gib: float | None = None
    is_open: bool = False


def budget_of(context: Context, hardware: HardwareFacts) -> Budget:
    """The budget of a deployment on a device whose memory is known."""
    device = _seen(hardware)
    asked, is_given = _given_cache_gib(context)
    share = 1.0 if is_given else memory_share(context)
    return Budget(
        gib=Span(device.least * share, device.expected * share, device.most * share),
        share=share,
        device_gib=hardware.memory_gib,
        cache_gib=asked,
        is_open=is_given and asked is None,
    )


def memory_share(context: Context) -> float:
    """`gpu_memory_utilization` in effect; an engine without the flag may use the whole device."""
    share = context.parameters.get("gpu_memory_utilization")
    if isinstance(share, int | float) and not isinstance(share, bool):
        return float(share)
    if not sizes_a_cache(context):
        return 1.0
    is_old = context.engine is not None and not context.is_vllm(since=(0, 12))
    return OLD_MEMORY_SHARE if is_old and context.is_vllm() else DEFAULT_MEMORY_SHARE


def sizes_a_cache(context: Context) -> bool:
    """Whether the engine is vLLM, served or offline: it refuses what leaves no room for a cache."""
    return context.engine is None or context.engine.name.partition("_")[0] == "vllm"


def _seen(hardware: HardwareFacts) -> Span:
    if hardware.kind == "cpu":
        return exactly(hardware.memory_gib)
    most = SEEN_SHARE.most if hardware.detected else DESCRIBED_MOST
    return Span(*(hardware.memory_gib * by for by in (SEEN_SHARE.least, SEEN_SHARE.expected, most)))


def _given_cache_gib(context: Context) -> tuple[float | None, bool]:
    """(size, whether one was given)."""
    value = given(context, "kv_cache_memory_bytes")
    if value is not None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return (float(value) / GIB if is_number else None), True
    space = context.parameters.get("env.VLLM_CPU_KVCACHE_SPACE")
    if context.device == "cpu" and space is not None and str(space) not in {"", "0"}:
        try:
            return float(str(space)), True
        except ValueError:
            return None, True
    return None, False
