"""Worker: turn a GGUF file into a plain bf16 safetensors folder.

Request: ``{"folder", "file", "target"}``; result: ``{"versions": {"torch": ..., ...}}``.

It is run by the engine's interpreter, which has torch and transformers, and imports nothing of
sweeper: the tuner's own process never loads torch for this.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import worker_protocol

# Where the weights once came from says nothing here, and names a training run by accident.
_ODD_KEYS = ("_model_name_or_path", "is_local", "local_files_only")


def main(worker: worker_protocol.Worker) -> dict[str, Any]:
    """Convert what the request names; the folder `target` is complete then."""
    for module in ("torch", "transformers", "gguf", "accelerate", "safetensors"):
        importlib.import_module(module)
    request = worker.request
    versions = convert(request["folder"], request["file"], Path(request["target"]), worker)
    return {"versions": versions}


def convert(folder: str, file: str, target: Path, worker: worker_protocol.Worker) -> dict[str, str]:
    """Load the GGUF, copy its weights into a fresh model without quantization, save both parts."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    worker.phase("load")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)

    worker.phase("save")
    # save_pretrained refuses a model that was loaded from GGUF, hence the fresh one.
    fields = {k: v for k, v in loaded.config.to_dict().items() if k != "quantization_config"}
    fresh = type(loaded)(type(loaded.config)(**fields))
    fresh.load_state_dict(loaded.state_dict())
    fresh.to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)
    _tidy(target)
    return {"torch": torch.__version__, "transformers": transformers.__version__}


def _tidy(target: Path) -> None:
    for name in ("config.json", "tokenizer_config.json"):
        path = target / name
        data = json.loads(path.read_text(encoding="utf-8"))
        kept = {key: value for key, value in data.items() if key not in _ODD_KEYS}
        path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    for path in target.iterdir():
        path.chmod(0o644)  # safetensors writes its file readable by its owner only


if __name__ == "__main__":
    worker_protocol.run(main)
