"""A toolchain that makes a tiny checkpoint at once, or fails as the model's folder tells it to.

``fake.json`` in the model's folder: ``{"then": WHAT, ...}``, see `fail` and `fill`; or one such
object a method, ``{"W8A8": {...}}``. Each run adds a line to
``runs.txt`` there. Standard library only, like any worker.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    import worker_protocol

LAYERS = 2


def main(worker: worker_protocol.Worker) -> dict:
    model, out = Path(worker.request["model"]), Path(worker.request["out"])
    told = model / "fake.json"
    say = json.loads(told.read_text()) if told.exists() else {}
    say = say.get(worker.request["method"], say)
    (model / "request.json").write_text(json.dumps(worker.request))
    if worker.request["texts"] is not None:
        (model / "texts.txt").write_text(Path(worker.request["texts"]).read_text())
    with (model / "runs.txt").open("a") as runs:
        runs.write(f"{os.getpid()}\n")
    worker.phase("load")
    worker.phase("quantize")
    worker.progress(1, LAYERS, "layers")
    (out / "half.bin").write_bytes(b"half")
    time.sleep(say.get("takes_s", 0.0))
    fail(say)
    (out / "half.bin").unlink()
    worker.progress(LAYERS, LAYERS, "layers")
    fill(out, worker.request, say)
    return {"versions": {"fake": "1.0"}, "layers": LAYERS, "device": "cpu"}


def fail(say: dict) -> None:
    then = say.get("then")
    if then == "error":
        raise worker_protocol.WorkerError(say["kind"], say["message"])
    if then == "raise":
        print("a library warns: ConnectionError, trying again", file=sys.stderr)
        raise RuntimeError(say["message"])
    if then == "die":
        print(say.get("message", ""), file=sys.stderr, flush=True)
        os.kill(os.getpid(), say.get("signal", signal.SIGKILL))


def fill(out: Path, request: dict, say: dict) -> None:
    group = request["group_size"]
    weights = {
        "num_bits": say.get("bits", request["bits"]),
        "group_size": None if group == -1 else group,
        "strategy": "channel" if group == -1 else "group",
        "symmetric": request["symmetric"],
    }
    config = {
        "model_type": "llama",
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": weights}},
        },
    }
    (out / "config.json").write_text(json.dumps(config))
    if say.get("tokenizer", True):
        (out / "tokenizer.json").write_text("{}")
    scale = b"\x00\x7c" if say.get("infinite") else b"\x00\x3c"
    tensors = {"layers.0.weight_packed": b"\x11" * 64, "layers.0.weight_scale": scale * 4}
    table, data = {}, b""
    for name, content in tensors.items():
        kind, width = ("F16", 2) if name.endswith("scale") else ("U8", 1)
        place = [len(data), len(data) + len(content)]
        table[name] = {"dtype": kind, "shape": [len(content) // width], "data_offsets": place}
        data += content
    header = json.dumps(table).encode()
    blob = len(header).to_bytes(8, "little") + header + data
    (out / "model.safetensors").write_bytes(blob[: -1 if say.get("cut_off") else None])


if __name__ == "__main__":
    worker_protocol.run(main)
