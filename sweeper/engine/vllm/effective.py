"""Effective engine arguments, read back from a running vLLM server.

Three sources tell what is in effect, later ones win:

1. the log: the engine's summary of its configuration, and the scheduler's line on its batch;
2. `/metrics`: the labels of `vllm:cache_config_info`, one line a replica;
3. `/server_info`, if `engine.options.server_info=true`. It tells everything, but vLLM serves it
   only in development mode, which also opens endpoints that no API key guards (`/collective_rpc`,
   `/sleep`) to every user of the machine, and is not how a deployment runs. It is therefore off by
   default, and never part of an exported command.

The arguments as the server parsed them stand in the log too. They are an echo of the command line
and prove nothing; `sweeper.engine.vllm.log_facts.echoed` reads them. What only they tell
(`max_num_seqs`, unless `/server_info` may be asked) is recorded as not told.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from typing import Any

from sweeper.engine.local_http import Endpoint, call_url
from sweeper.engine.vllm import log_facts

TIMEOUT_S = 30.0

_CACHE_LINE = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_CACHE_NAMES = {
    "block_size": "block_size",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "cache_dtype": "kv_cache_dtype",
    "enable_prefix_caching": "enable_prefix_caching",
    "num_gpu_blocks": "num_kv_blocks",
    "num_cpu_blocks": "num_cpu_blocks",
    "sliding_window": "sliding_window",
    "kv_cache_size_tokens": "kv_cache_tokens",
}
_SECTIONS: Mapping[str, Mapping[str, str]] = {
    "model_config": {
        name: name for name in ("max_model_len", "dtype", "quantization", "enforce_eager", "seed")
    },
    "cache_config": _CACHE_NAMES,
    # Not `data_parallel_size`: every replica of a dense model counts itself as one.
    "parallel_config": {name: name for name in ("tensor_parallel_size", "pipeline_parallel_size")},
    "scheduler_config": {
        "max_num_seqs": "max_num_seqs",
        "max_num_batched_tokens": "max_num_batched_tokens",
        "enable_chunked_prefill": "enable_chunked_prefill",
        "async_scheduling": "async_scheduling",
    },
}
_SPECULATIVE = ("method", "num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min")


def read_back(endpoint: Endpoint, log_text: str, *, server_info: bool) -> dict[str, Any]:
    """Arguments in effect, by underscored name; what no source tells is absent."""
    asked = ask(endpoint.base_url, endpoint.api_key, server_info=server_info)
    return {**log_facts.effective(log_text), **asked}


def ask(base_url: str, api_key: str | None, *, server_info: bool) -> dict[str, Any]:
    """Arguments that a server tells over HTTP; empty if it is no vLLM, or does not answer."""
    found = from_metrics(_text(base_url, api_key, "/metrics"))
    if server_info:
        info = _text(base_url, api_key, "/server_info?config_format=json")
        found.update(from_server_info(_plain_json(info)))
    return found


def from_metrics(text: str) -> dict[str, Any]:
    """Cache settings from the labels of `vllm:cache_config_info`, and how many replicas. Pure."""
    replicas = [dict(_LABEL.findall(line)) for line in _CACHE_LINE.findall(text)]
    if not replicas:
        return {}
    labels = replicas[0]
    found = {
        name: _value(labels[label])
        for label, name in _CACHE_NAMES.items()
        if label in labels and labels[label] != "None"
    }
    if "engine" in labels:
        found["data_parallel_size"] = len({replica.get("engine") for replica in replicas})
    return found


def from_server_info(info: Any) -> dict[str, Any]:
    """The settings that matter for comparing runs, from `/server_info`. Pure."""
    config = info.get("vllm_config") if isinstance(info, dict) else None
    if not isinstance(config, dict):
        return {}
    found: dict[str, Any] = {}
    for section, names in _SECTIONS.items():
        values = config.get(section)
        if isinstance(values, dict):
            found.update(
                {
                    name: values[field]
                    for field, name in names.items()
                    if values.get(field) is not None
                }
            )
    if "dtype" in found:
        found["dtype"] = str(found["dtype"]).removeprefix("torch.")
    speculative = config.get("speculative_config")
    if isinstance(speculative, dict):
        told = {name: speculative.get(name) for name in _SPECULATIVE}
        found["speculative_config"] = {k: v for k, v in told.items() if v is not None}
    return found


def _value(text: str) -> Any:
    constants: dict[str, Any] = {"True": True, "False": False}
    if text in constants:
        return constants[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text(base_url: str, api_key: str | None, path: str) -> str:
    try:
        reply = call_url(base_url, path, api_key=api_key, timeout_s=TIMEOUT_S)
    except (OSError, http.client.HTTPException):
        return ""
    return reply.text if reply.status == http.HTTPStatus.OK else ""


def _plain_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
