"""TensorRT-LLM: the nearest equivalent of a deployment of vLLM. Pure.

Names are those of ``trtllm-serve --help`` and of its ``LlmArgs`` (1.2 to 1.4, PyTorch backend).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.export.bundle import EXECUTABLE, ExportInput, File, Files
from sweeper.export.origin import origin
from sweeper.export.sglang import start_script
from sweeper.export.translation import (
    Found,
    Near,
    Nothing,
    Rule,
    Same,
    Translation,
    option,
    switch,
    translate,
    unmeasured,
    whole_number,
    words_of,
)
from sweeper.export.yaml_text import comments, dump

FILE_NAME, OPTIONS_NAME = "trtllm.sh", "trtllm.yaml"
_ENGINE = "TensorRT-LLM"
_KV_TYPES = {"fp8": "fp8", "fp8_e4m3": "fp8"}
_NO_CPU = "TensorRT-LLM runs on NVIDIA GPUs only, and this deployment is one of a CPU."


def _memory(value: Any) -> Found:
    # In the file: a kv_cache_config there replaces what the flag would set.
    return Near(
        options={"kv_cache_config": {"free_gpu_memory_fraction": value}},
        note="the share of what is free once the weights are loaded, for the KV cache alone",
    )


def _kv_type(value: Any) -> Found:
    if value in _KV_TYPES:
        return Same(options={"kv_cache_config": {"dtype": _KV_TYPES[value]}})
    return Nothing("it has no such KV cache")


def _prefix_caching(value: Any) -> Found:
    if value is False:
        return Same(options={"kv_cache_config": {"enable_block_reuse": False}})
    return Same(note="blocks are reused")


def _eager(value: Any) -> Found:
    return Same(options={"cuda_graph_config": None}) if value is True else Same()


def _ranks(value: Any) -> Found:
    if value == 1:
        return Same()
    return Nothing("start as many servers behind a proxy; its attention_dp is another thing")


def _quantization(_: Any) -> Found:
    return Nothing(
        "it takes the precision from the checkpoint: make one with NVIDIA ModelOpt, and measure it"
    )


def _speculative(value: Any) -> Found:
    """n-grams of the prompt, a draft model, or EAGLE-3 heads."""
    if not isinstance(value, Mapping) or not isinstance(value.get("num_speculative_tokens"), int):
        return Nothing("only a method with a number of tokens is known here")
    method, tokens = str(value.get("method")), int(value["num_speculative_tokens"])
    drafts: dict[str, Any] = {"max_draft_len": tokens}
    if method == "ngram":
        longest = value.get("prompt_lookup_max")
        more = {} if longest is None else {"max_matching_ngram_size": longest}
        config = {"decoding_type": "NGram", **drafts, **more}
        note = "it looks n-grams up in a pool that all requests share"
        return Near(options={"speculative_config": config}, note=note)
    names = {"draft_model": "Draft_Target", "eagle3": "Eagle3"}
    if method not in names or "model" not in value:
        return Nothing(f"method {method} is not known here")
    config = {"decoding_type": names[method], **drafts, "speculative_model": str(value["model"])}
    return Same(options={"speculative_config": config})


def _dtype(value: Any) -> Found:
    words = {"half": "float16", "float": "float32"}
    return Same(options={"dtype": words.get(str(value), str(value))})


RULES: dict[str, Rule] = {
    "tensor_parallel_size": option("--tp_size"),
    "pipeline_parallel_size": option("--pp_size"),
    "data_parallel_size": _ranks,
    "max_model_len": whole_number("--max_seq_len"),
    "max_num_seqs": option("--max_batch_size"),
    "max_num_batched_tokens": whole_number("--max_num_tokens"),
    "gpu_memory_utilization": _memory,
    "enable_prefix_caching": _prefix_caching,
    "enable_chunked_prefill": switch(on=("--enable_chunked_prefill",)),
    "enforce_eager": _eager,
    "kv_cache_dtype": _kv_type,
    "dtype": _dtype,
    "quantization": _quantization,
    "speculative_config": _speculative,
    "trust_remote_code": switch(on=("--trust_remote_code",)),
    "tokenizer": option("--tokenizer"),
    "chat_template": option("--chat_template"),
    "reasoning_parser": lambda _: Nothing("its parsers have other names: --reasoning_parser"),
    "tool_call_parser": lambda _: Nothing("its parsers have other names: --tool_parser"),
}


def render(source: ExportInput) -> Files:
    """``trtllm.sh``, and ``trtllm.yaml`` for what has no flag; on a CPU a word on why not."""
    if source.measured_on.on_cpu:
        text = comments([_NO_CPU, *origin(source)])
        return {FILE_NAME: File(f"#!/bin/sh\n{text}exit 1\n", EXECUTABLE)}
    found = translate(source, RULES, _ENGINE)
    files = {FILE_NAME: File(_script(source, found), EXECUTABLE)}
    if found.options:
        lines = [unmeasured(_ENGINE), *origin(source)]
        files[OPTIONS_NAME] = File(comments(lines) + dump(dict(found.options)))
    return files


def _script(source: ExportInput, found: Translation) -> str:
    lines = [
        unmeasured(_ENGINE),
        *origin(source),
        "",
        *_made(source),
        "Clients ask for the model by the last part of its path: there is no other name for it.",
        "What became of each flag of vLLM:",
        *found.lines,
    ]
    named = {"--host": source.host, "--port": source.port, "--revision": source.revision}
    named["--config"] = OPTIONS_NAME if found.options else None
    words = [
        word for name, value in named.items() if value is not None for word in words_of(name, value)
    ]
    # Behind the mark a dash in front of the model's name is harmless.
    script = start_script(
        source, "trtllm-serve serve", [*words, *found.argv], last=("--", source.model_path)
    )
    return "#!/bin/sh\n" + comments(lines) + script


def _made(source: ExportInput) -> list[str]:
    """A warning where the checkpoint was made here."""
    if not source.made:
        return []
    return [
        "The checkpoint was made for vLLM. TensorRT-LLM is not known to read it: make one of the "
        "same precision with NVIDIA ModelOpt."
    ]
