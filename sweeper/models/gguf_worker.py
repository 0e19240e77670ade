"""Worker: turn a GGUF file into a plain bf16 safetensors folder. Runs as a script of its own.

    python -P gguf_worker.py FOLDER FILE.gguf OUT

It speaks JSON lines on standard output (whatever a library prints goes to standard error):

    {"event": "phase", "name": "load"}
    {"event": "done", "versions": {"torch": "...", "transformers": "..."}}
    {"event": "error", "kind": "missing" | "failed", "message": "..."}

It is started with the engine's interpreter, which has torch and transformers, and imports nothing
of sweeper: the tuner's own process never loads torch for this.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

# Where the weights once came from says nothing here, and names a training run by accident.
_ODD_KEYS = ("_model_name_or_path", "is_local", "local_files_only")


def main(argv: list[str]) -> int:
    """Convert and report; 0 if the folder OUT is complete."""
    out = _claim_stdout()
    folder, file, target = argv
    try:
        for module in ("torch", "transformers", "gguf", "accelerate", "safetensors"):
            importlib.import_module(module)
        versions = convert(folder, file, Path(target), out)
    except ImportError as error:
        return _report(out, {"event": "error", "kind": "missing", "message": str(error)})
    except Exception as error:  # the parent turns it into a message; the trace is in its log
        import traceback

        traceback.print_exc()
        message = f"{type(error).__name__}: {error}"
        return _report(out, {"event": "error", "kind": "failed", "message": message})
    return _report(out, {"event": "done", "versions": versions})


def convert(folder: str, file: str, target: Path, out: TextIO) -> dict[str, str]:
    """Load the GGUF, copy its weights into a fresh model without quantization, save both parts."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _report(out, {"event": "phase", "name": "load"})
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)

    _report(out, {"event": "phase", "name": "save"})
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


def _claim_stdout() -> TextIO:
    """Keep standard output for the protocol, and send what libraries print to standard error."""
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return protocol


def _report(out: TextIO, event: dict[str, Any]) -> int:
    out.write(json.dumps(event) + "\n")
    out.flush()
    return 1 if event["event"] == "error" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
