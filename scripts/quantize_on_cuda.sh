#!/usr/bin/env bash
# Proves on a machine with an NVIDIA GPU that the toolchains which want one make checkpoints: AutoGPTQ
# (which refuses to work without), GPTQModel in both formats, and AutoAWQ. Each runs in its own
# environment, which uv makes the first time. One line of result each; logs lie beside the checkpoints.
#
#   scripts/quantize_on_cuda.sh MODEL_FOLDER [OUT_FOLDER [GROUP_SIZE]]
#
# MODEL_FOLDER  a small model as safetensors (Llama, Qwen2, Mistral ...)
# OUT_FOLDER    where checkpoints go, default ./quantized-on-cuda; must not hold any yet
# GROUP_SIZE    must divide the model's layers: 32, 64 or 128 (default)
#
# Exit code: 0 if all were made, 1 if one was not, 2 if they could not be tried.
set -euo pipefail

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

[[ $# -ge 1 && $# -le 3 && $1 != -* ]] || usage
model=$1
out=${2:-quantized-on-cuda}
group_size=${3:-128}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$root/.venv/bin/python

fail() {
  echo "quantize_on_cuda: $1" >&2
  exit 2
}

[[ -x $python ]] || fail "$python is not there: run make setup first"
[[ -f $model/config.json ]] || fail "$model is not the folder of a model: it has no config.json"
if ! nvidia-smi -L > /dev/null 2>&1; then
  fail "no NVIDIA GPU here (nvidia-smi -L fails): AutoGPTQ works on a GPU only. On a CPU, take
  quantize=gptqmodel or quantize=w4a16."
fi

PYTHONPATH=$root exec "$python" - "$model" "$out" "$group_size" <<'PYTHON'
import json
import sys
from pathlib import Path

from sweeper.quantize.calibration import write_texts
from sweeper.quantize.recipe import Recipe
from sweeper.quantize.tools import tool
from sweeper.toolchain.worker import EndKind, WorkerJob, run_worker

model, out, group_size = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3])
gptq = {"bits": 4, "group_size": group_size, "symmetric": True}
awq = {"bits": 4, "group_size": group_size, "symmetric": False}
TRIED = {
    "auto_gptq": ("auto_gptq", {**gptq, "act_order": False}),
    # Engines read act order with one scale a channel only.
    "auto_gptq-act_order": ("auto_gptq", {**gptq, "group_size": -1, "act_order": True}),
    "gptqmodel": ("gptqmodel", {**gptq, "method": "gptq", "act_order": False}),
    "gptqmodel-awq": ("gptqmodel", {**awq, "method": "awq"}),
    "autoawq": ("autoawq", awq),
}
recipe = Recipe(
    "cuda", "auto_gptq", calibration="builtin", calibration_samples=64, calibration_tokens=512
)
out.mkdir(parents=True, exist_ok=True)
if taken := [name for name in TRIED if (out / name).exists()]:
    sys.exit(f"quantize_on_cuda: {out / taken[0]} is there already: name another folder")
texts = out / "texts.jsonl"
write_texts(recipe, texts)
before = sum(path.stat().st_size for path in model.glob("*.safetensors"))
failed = False
for name, (tool_name, fields) in TRIED.items():
    folder = out / name
    folder.mkdir()
    request = {
        "model": str(model),
        "out": str(folder),
        "texts": str(texts),
        "samples": recipe.calibration_samples,
        "tokens": recipe.calibration_tokens,
        "device": "cuda",
        "seed": 0,
        **fields,
    }
    log = out / f"{name}.log"
    end = run_worker(WorkerJob(tool(tool_name).script, request, log, 7200), lambda event: None)
    if end.kind is EndKind.DONE:
        after = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        method = json.loads((folder / "config.json").read_text())["quantization_config"]
        print(
            f"{name}: made in {end.seconds:.0f} s, {after / 1e6:.0f} MB of {before / 1e6:.0f} MB, "
            f"{method['quant_method']} {method['bits']} bits, group {method['group_size']}, "
            f"{end.result['samples']} samples, {end.result['versions']}",
            flush=True,
        )
    else:
        failed = True
        print(f"{name}: {end.kind} {end.error}: {end.message} (see {log})", flush=True)
sys.exit(1 if failed else 0)
PYTHON
