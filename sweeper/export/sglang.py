"""SGLang: the nearest equivalent of a deployment of vLLM, as a start script. Pure.

Names are those of ``python -m sglang.launch_server --help`` (0.5).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sweeper.export.bundle import EXECUTABLE, ExportInput, File, Files
from sweeper.export.origin import origin
from sweeper.export.translation import (
    Found,
    Near,
    Nothing,
    Rule,
    Same,
    one_of,
    option,
    switch,
    translate,
    unmeasured,
    whole_number,
    words_of,
)
from sweeper.export.yaml_text import comments

FILE_NAME = "sglang.sh"
_ENGINE = "SGLang"
_KV_TYPES = {
    "fp8": "fp8_e4m3",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "bfloat16": "bf16",
}
_QUANTIZATIONS = ("awq", "fp8", "gptq", "compressed-tensors", "bitsandbytes", "gguf")


def _quantization(value: Any) -> Found:
    if value in _QUANTIZATIONS:
        return Same(("--quantization", str(value)))
    if value in {"fp8_per_tensor", "fp8_per_block"}:
        return Near(("--quantization", "fp8"), note="its own scales when it loads the weights")
    return Nothing("it does not make this precision when it loads the weights")


def _chunked(value: Any) -> Found:
    if value is False:
        return Same(("--chunked-prefill-size=-1",))
    return Same(note="chunked prefill is on")


def _policy(value: Any) -> Found:
    if value == "priority":
        return Same(("--enable-priority-scheduling",))
    return Same(("--schedule-policy", str(value))) if value == "fcfs" else Nothing("not known")


def _speculative(value: Any) -> Found:
    """n-grams, a draft model or EAGLE heads; a chain of drafts as vLLM's, and no tree."""
    if not isinstance(value, Mapping) or not isinstance(value.get("num_speculative_tokens"), int):
        return Nothing("only a method with a number of tokens is known here")
    method, tokens = str(value.get("method")), int(value["num_speculative_tokens"])
    if method == "ngram":
        return Near(
            ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", str(tokens)),
            note="it looks n-grams up in what it has served, not in the prompt alone; the names "
            "of their lengths change between its versions",
        )
    names = {"draft_model": "STANDALONE", "eagle": "EAGLE", "eagle3": "EAGLE3"}
    if method not in names or "model" not in value:
        return Nothing(f"method {method} is not known here")
    draft = str(value["model"])
    return Same(
        (
            *("--speculative-algorithm", names[method]),
            *("--speculative-draft-model-path", draft),
            *("--speculative-num-steps", str(tokens)),
            *("--speculative-eagle-topk", "1"),
            *("--speculative-num-draft-tokens", str(tokens + 1)),
        )
    )


RULES: dict[str, Rule] = {
    "tensor_parallel_size": option("--tp-size"),
    "pipeline_parallel_size": option("--pp-size"),
    "data_parallel_size": option("--dp-size"),
    "max_model_len": whole_number("--context-length"),
    "max_num_seqs": option("--max-running-requests"),
    "max_num_batched_tokens": whole_number(
        "--chunked-prefill-size", "tokens of prefill a step, without those of decoding"
    ),
    "gpu_memory_utilization": option(
        "--mem-fraction-static",
        "weights and KV cache alone, what a step needs comes on top: lower it if it runs out",
    ),
    "enable_prefix_caching": switch(off=("--disable-radix-cache",)),
    "enable_chunked_prefill": _chunked,
    "enforce_eager": switch(on=("--disable-cuda-graph",)),
    "kv_cache_dtype": one_of("--kv-cache-dtype", _KV_TYPES, "it has no such KV cache"),
    "dtype": option("--dtype"),
    "quantization": _quantization,
    "speculative_config": _speculative,
    "trust_remote_code": switch(on=("--trust-remote-code",)),
    "seed": option("--random-seed"),
    "tokenizer": option("--tokenizer-path"),
    "tokenizer_mode": one_of("--tokenizer-mode", {"auto": "auto", "slow": "slow"}, "not known"),
    "load_format": option("--load-format"),
    "block_size": option("--page-size"),
    "scheduling_policy": _policy,
    "chat_template": option("--chat-template"),
    "reasoning_parser": lambda _: Nothing("its parsers have other names: --reasoning-parser"),
    "tool_call_parser": lambda _: Nothing("its parsers have other names: --tool-call-parser"),
}


def render(source: ExportInput) -> Files:
    """``sglang.sh``."""
    found = translate(source, RULES, _ENGINE)
    named = {
        "--model-path": source.model_path,
        "--served-model-name": source.served_name,
        "--host": source.host,
        "--port": source.port,
        "--revision": source.revision,
        "--device": "cpu" if source.measured_on.on_cpu else None,
    }
    words = [
        word for name, value in named.items() if value is not None for word in words_of(name, value)
    ]
    lines = [
        *[unmeasured(_ENGINE), *origin(source), ""],
        *["What became of each flag of vLLM:", *found.lines],
    ]
    script = start_script(
        source, '"${PYTHON:-python3}" -m sglang.launch_server', [*words, *found.argv]
    )
    return {FILE_NAME: File("#!/bin/sh\n" + comments(lines) + script, EXECUTABLE)}


def start_script(
    source: ExportInput, program: str, words: Sequence[str], last: Sequence[str] = ()
) -> str:
    """Environment that is not vLLM's own, then the program in the shell's place.

    What the script itself is given stands before `last`.
    """
    exports = [
        f"export {name}={shlex.quote(value)}"
        for name, value in source.public_env.items()
        if not name.startswith("VLLM_")
    ]
    lines = [f"exec {program}", *_in_lines(words), '"$@"', *_in_lines(last)]
    return (
        "\n".join(["set -eu", 'cd -- "$(dirname -- "$0")"', *exports, " \\\n    ".join(lines)])
        + "\n"
    )


def _in_lines(words: Sequence[str]) -> list[str]:
    """Words of a command, a flag and its value to a line."""
    lines: list[str] = []
    for word in words:
        if word.startswith("--") or not lines:
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return lines
