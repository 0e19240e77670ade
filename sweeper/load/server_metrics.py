"""The server's own counters, from the Prometheus text at ``/metrics``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sweeper.load.address import ServerAddress
from sweeper.load.http import read_text

if TYPE_CHECKING:
    import aiohttp

PREEMPTIONS = "vllm:num_preemptions_total"
PREFIX_HITS = "vllm:prefix_cache_hits_total"
PREFIX_QUERIES = "vllm:prefix_cache_queries_total"
GENERATION_TOKENS = "vllm:generation_tokens_total"
PROMPT_TOKENS = "vllm:prompt_tokens_total"
KV_USAGE = "vllm:kv_cache_usage_perc"
SPEC_DRAFTS = "vllm:spec_decode_num_drafts_total"
SPEC_DRAFT_TOKENS = "vllm:spec_decode_num_draft_tokens_total"
SPEC_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
REQUEST_SUCCESS = "vllm:request_success_total"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"

GAUGES = (KV_USAGE, RUNNING, WAITING)

# Our name → the names it has had, newest first. Some versions offer an old name beside the new
# one, so the first that is there is taken and never a sum over names.
_NAMES: dict[str, tuple[str, ...]] = {
    PREEMPTIONS: (PREEMPTIONS, "vllm:num_preemptions"),
    PREFIX_HITS: (
        PREFIX_HITS,
        "vllm:prefix_cache_hits",
        "vllm:gpu_prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits",
    ),
    PREFIX_QUERIES: (
        PREFIX_QUERIES,
        "vllm:prefix_cache_queries",
        "vllm:gpu_prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries",
    ),
    GENERATION_TOKENS: (GENERATION_TOKENS, "vllm:generation_tokens"),
    PROMPT_TOKENS: (PROMPT_TOKENS, "vllm:prompt_tokens"),
    KV_USAGE: (KV_USAGE, "vllm:gpu_cache_usage_perc"),
    SPEC_DRAFTS: (SPEC_DRAFTS, "vllm:spec_decode_num_drafts"),
    SPEC_DRAFT_TOKENS: (SPEC_DRAFT_TOKENS, "vllm:spec_decode_num_draft_tokens"),
    SPEC_ACCEPTED: (SPEC_ACCEPTED, "vllm:spec_decode_num_accepted_tokens"),
    REQUEST_SUCCESS: (REQUEST_SUCCESS, "vllm:request_success"),
    RUNNING: (RUNNING,),
    WAITING: (WAITING,),
}
_SCRAPE_TIMEOUT_S = 10.0


def parse(text: str) -> dict[str, float]:
    """Values by name, summed over label sets (engines of a data-parallel server, say).

    The KV-cache share is a gauge, so its largest is taken. Finished requests are also given by
    reason, as ``vllm:request_success_total{finished_reason=stop}``. Names that the server does
    not offer are absent.
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for line in text.splitlines():
        sample = _sample(line)
        if sample is not None:
            name, labels, value = sample
            found.setdefault(name, []).append((labels, value))
    values: dict[str, float] = {}
    for ours, names in _NAMES.items():
        samples = next((found[name] for name in names if name in found), None)
        if samples is None:
            continue
        numbers = [value for _, value in samples]
        values[ours] = max(numbers) if ours == KV_USAGE else sum(numbers)
        if ours == REQUEST_SUCCESS:
            values |= _by_reason(samples)
    return values


async def scrape(session: aiohttp.ClientSession, address: ServerAddress) -> dict[str, float]:
    """The counters now; empty if the server tells none, or does not answer in ten seconds."""
    return parse(await _text(session, address))


async def _text(session: aiohttp.ClientSession, address: ServerAddress) -> str:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=_SCRAPE_TIMEOUT_S)
    try:
        async with session.get(
            address.url("/metrics"), timeout=timeout, allow_redirects=False
        ) as response:
            return await read_text(response) if response.status == 200 else ""
    except (aiohttp.ClientError, OSError):
        return ""  # a measurement without the server's view is still one, only unchecked


def parse_gauges(text: str) -> dict[str, float]:
    """KV-cache share, running and waiting requests, as far as they are told.

    Queues of several engines add up, the KV cache's share is the fullest one's. The text is
    searched for the few names instead of being read whole: this happens while requests are timed.
    """
    values: dict[str, float] = {}
    for ours in GAUGES:
        numbers = next((found for name in _NAMES[ours] if (found := _values_of(text, name))), None)
        if numbers:
            values[ours] = max(numbers) if ours == KV_USAGE else sum(numbers)
    return values


def _values_of(text: str, name: str) -> list[float]:
    numbers: list[float] = []
    at = text.find(name)
    while at >= 0:
        end = text.find("\n", at)
        line = text[at:] if end < 0 else text[at:end]
        sample = _sample(line) if at == 0 or text[at - 1] == "\n" else None
        if sample is not None and sample[0] == name:
            numbers.append(sample[2])
        at = text.find(name, at + len(name))
    return numbers


async def scrape_gauges(session: aiohttp.ClientSession, address: ServerAddress) -> dict[str, float]:
    """The gauges now; empty if the server tells none, or does not answer in ten seconds."""
    return parse_gauges(await _text(session, address))


def _sample(line: str) -> tuple[str, str, float] | None:
    """Name, labels and value of one sample line; None for comments and what is not finite."""
    if not line.startswith("vllm:"):
        return None
    head, brace, _ = line.partition("{")
    if brace:
        labels, _, rest = line[len(head) + 1 :].rpartition("}")
    else:
        head, _, rest = line.partition(" ")
        labels = ""
    try:
        value = float(rest.split()[0])
    except (IndexError, ValueError):
        return None
    return (head, labels, value) if math.isfinite(value) else None


def _by_reason(samples: list[tuple[str, float]]) -> dict[str, float]:
    values: dict[str, float] = {}
    for labels, value in samples:
        _, found, tail = labels.partition('finished_reason="')
        if found:
            key = f"{REQUEST_SUCCESS}{{finished_reason={tail.partition(chr(34))[0]}}}"
            values[key] = values.get(key, 0.0) + value
    return values
