"""Effective engine arguments, read back from a running vLLM server.

Three sources, later ones win:

1. the log: arguments as parsed, and the engine's summary of its configuration;
2. `/metrics`: the labels of `vllm:cache_config_info`;
3. `/server_info`, if `engine.options.server_info=true`. It tells everything, but vLLM serves it
   only in development mode, which also opens endpoints that no API key guards (`/collective_rpc`,
   `/sleep`) to every user of the machine, and is not how a deployment runs. It is therefore off by
   default, and never part of an exported command.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from typing import Any

from sweeper.engine.local_http import Endpoint, call
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
    "parallel_config": {
        name: name
        for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    },
    "scheduler_config": {
        "max_num_seqs": "max_num_seqs",
        "max_num_batched_tokens": "max_num_batched_tokens",
        "enable_chunked_prefill": "enable_chunked_prefill",
        "async_scheduling": "async_scheduling",
    },
}


def read_back(endpoint: Endpoint, log_text: str, *, server_info: bool) -> dict[str, Any]:
    """Arguments in effect, by underscored name; what no source tells is absent."""
    found = log_facts.arguments(log_text)
    found.update(from_metrics(_text(endpoint, "/metrics")))
    if server_info:
        found.update(from_server_info(_json(endpoint, "/server_info?config_format=json")))
    return found


def from_metrics(text: str) -> dict[str, Any]:
    """Cache settings from the labels of `vllm:cache_config_info`. Pure."""
    match = _CACHE_LINE.search(text)
    if match is None:
        return {}
    labels = dict(_LABEL.findall(match.group(1)))
    return {
        name: _value(labels[label])
        for label, name in _CACHE_NAMES.items()
        if label in labels and labels[label] != "None"
    }


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


def _text(endpoint: Endpoint, path: str) -> str:
    try:
        reply = call(endpoint, path, timeout_s=TIMEOUT_S)
    except (OSError, http.client.HTTPException):
        return ""
    return reply.text if reply.status == http.HTTPStatus.OK else ""


def _json(endpoint: Endpoint, path: str) -> Any:
    try:
        return call(endpoint, path, timeout_s=TIMEOUT_S).json()
    except (OSError, http.client.HTTPException, ValueError):
        return None
